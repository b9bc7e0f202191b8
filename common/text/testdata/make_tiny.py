#!/usr/bin/env python3
"""Writes tiny.json: a byte-level BPE vocabulary of our own, and what Hugging Face's tokenizers makes of strings with it.

usage: make_tiny.py    (needs tokenizers)

The vocabulary is trained on strings.py, with control and user-defined tokens of which some begin alike. "spelled" is
what remains when control tokens are not looked for. "replaced" is Python's decoding of ill-formed UTF-8.
"""
import json
import pathlib
import random

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import golden
from strings import STRINGS

HERE = pathlib.Path(__file__).parent
CONTROL = ["<@end@>", "<@end", "<@start@>", "<@", "[ctl]"]
USER_DEFINED = ["<tool>", "<tool>>", "    ", "\n\n", "über"]
EXTRA = [
    "<@end@><@end<@en<@<<@start@>", "a<@b<@end c<@end@> d", "x[ctl]y[ct][ctl", "<tool>>><tool>", "        five",
    "\n\n\n\n\nüberüb er", "<@<tool>@>", "über<@end@>\n\n    <@end",
]


def build(kinds):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\p{Nd}"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=700, min_frequency=2, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=CONTROL + USER_DEFINED)
    tokenizer.train_from_iterator(STRINGS * 2, trainer)
    model = json.loads(tokenizer.to_str())
    model["added_tokens"] = []
    tokenizer = Tokenizer.from_str(json.dumps(model))
    if "control" in kinds:
        tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in CONTROL])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in USER_DEFINED])
    return tokenizer, model["model"]


def main():
    parsing, model = build(["control", "user"])
    spelling, _ = build(["user"])
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    types = [3 if t in CONTROL else 4 if t in USER_DEFINED else 1 for t in tokens]
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    encode = lambda tokenizer, text: tokenizer.encode(text, add_special_tokens=False).ids
    cases = [{"text": text, "parsed": encode(parsing, text), "spelled": encode(spelling, text)}
             for text in STRINGS + EXTRA]
    rng = random.Random(1)
    pieces = [b"a", b"\xc3", b"\xa9", b"\xe2", b"\x82", b"\xac", b"\xf0", b"\x9f", b"\x91", b"\x8d", b"\xff", b"\xc0", b"\x80",
              b"\xed", b"\xa0", b"\xf4", b"\x90", b"\xe0", b"\xf5", "é".encode(), "€".encode(), "👍".encode()]
    ill = [b"", b"\xe2\x82", b"\xf0\x9f\x91", b"\xe2\x82a", b"\xf0\x80\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80"]
    ill += [b"".join(rng.choice(pieces) for _ in range(rng.randrange(1, 12))) for _ in range(200)]
    replaced = [{"hex": b.hex(), "text": b.decode("utf-8", errors="replace")} for b in ill]
    golden.write(HERE / "tiny.json", {"made_by": {"tokenizers": tokenizers.__version__}, "tokens": tokens, "types": types,
                                      "merges": merges, "cases": cases, "replaced": replaced})
    print(len(tokens), "tokens,", len(merges), "merges,", len(cases), "texts")


if __name__ == "__main__":
    main()
