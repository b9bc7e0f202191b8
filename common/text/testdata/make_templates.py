#!/usr/bin/env python3
"""Writes templates.json: what transformers renders from templates.py and, given a folder, from published templates.

usage: make_templates.py [FOLDER]    (needs jinja2 and transformers)

FOLDER holds published chat templates (*.jinja). They are not ours to copy, so only digests are written of them: of the
template and of each rendering. Without FOLDER their entries are kept as they are.
"""
import hashlib
import json
import pathlib
import sys

import jinja2
import transformers
from transformers.utils import chat_template_utils

import golden
from strings import CHATS, HOSTILE
from templates import TEMPLATES

HERE = pathlib.Path(__file__).parent
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
CHATS = CHATS + HOSTILE + [
    [("system", "S"), ("assistant", "<think>\nhm\n</think>\n\nfirst"), ("user", "u"), ("assistant", "<think>x</think>y")],
    [("user", "one"), ("user", "two")],
    [("user", "q"), ("tool", "<tool_response>42</tool_response>"), ("tool", "43"), ("assistant", "a")],
    [("user", "a"), ("developer", "b"), ("critic", "c")],
]


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def render(source, messages, generate):
    """The text, or None where the template refuses the messages."""
    template = chat_template_utils._compile_jinja_template(source)
    try:
        return template.render(messages=messages, tools=None, documents=None, add_generation_prompt=generate, **TOKENS)
    except Exception:
        return None


def cases(source, shape):
    for chat in CHATS:
        messages = [{"role": role, "content": content} for role, content in chat]
        for generate in (True, False):
            yield {"messages": messages, "add_generation_prompt": generate, "text": shape(render(source, messages, generate))}


def main():
    path = HERE / "templates.json"
    published = json.loads(path.read_text())["published"] if path.exists() else []
    if len(sys.argv) > 1:
        published = []
        for file in sorted(pathlib.Path(sys.argv[1]).glob("*.jinja")):
            source = file.read_text(encoding="utf-8")
            renderings = list(cases(source, lambda text: text if text is None else digest(text)))
            published.append({"file": file.name, "sha256": digest(source), "texts": [c["text"] for c in renderings]})
    chats = [{"messages": c["messages"], "add_generation_prompt": c["add_generation_prompt"]} for c in cases("", str)]
    own = [{"name": name, "source": source, "texts": [c["text"] for c in cases(source, lambda text: text)]}
           for name, source in TEMPLATES.items()]
    out = {"made_by": {"jinja2": jinja2.__version__, "transformers": transformers.__version__},
           "tokens": TOKENS, "chats": chats, "own": own, "published": published}
    golden.write(path, out)
    for entry in own + published:
        refused = sum(text is None for text in entry["texts"])
        print(entry.get("name") or entry["file"], len(entry["texts"]), "renderings,", refused, "refused by the template")


if __name__ == "__main__":
    main()
