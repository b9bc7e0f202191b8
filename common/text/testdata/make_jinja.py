#!/usr/bin/env python3
"""Writes jinja.json: what Jinja2 makes of snippets.py, set up as transformers sets it up for chat templates.

usage: make_jinja.py    (needs jinja2 and transformers)
"""
import json
import pathlib

import jinja2
import transformers
from transformers.utils import chat_template_utils

import golden
from snippets import REFUSED, REFUSED_IN_USE, SNIPPETS, VARIABLES

HERE = pathlib.Path(__file__).parent


def render(source):
    """The output, or None where Jinja2 or Python raises."""
    try:
        return chat_template_utils._compile_jinja_template(source).render(**VARIABLES)
    except Exception:
        return None


def main():
    snippets = [{"source": source, "output": render(source)} for source in SNIPPETS]
    refused = [{"source": source, "words": words} for source, words in REFUSED]
    out = {"made_by": {"jinja2": jinja2.__version__, "transformers": transformers.__version__},
           "variables": VARIABLES, "snippets": snippets, "refused": refused, "refused_in_use": REFUSED_IN_USE}
    golden.write(HERE / "jinja.json", out)
    print(len(snippets), "snippets, of which", sum(s["output"] is None for s in snippets), "raise")
    for s in snippets:
        if s["output"] is None:
            print("  raises:", repr(s["source"]))


if __name__ == "__main__":
    main()
