#!/usr/bin/env python3
"""Makes the reference answers that the worker's tests compare with, using transformers in fp32.

usage: make_greedy_golden.py smollm2 MODEL.gguf OUT.json
       make_greedy_golden.py tiny TINY_MODEL_PROGRAM OUT.json

Needs torch (CPU), transformers, gguf, tokenizers, jinja2. Weights are dequantised to fp32, attention is
eager, nothing is sampled. `smollm2` writes prompt ids, 48 greedy ids and each step's margin between the
two best logits; generation goes on past the end token. `tiny` makes random models with the tests' own
generator and writes some of their logits.
"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile

import torch
import transformers
from gguf import GGUFReader

STEPS = 48
torch.set_num_threads(2)


def long_report():
    """An inventory of a made-up harbour, long enough for several chunks and attention splits."""
    goods = ["rope", "lamp oil", "salted fish", "sail cloth", "copper nails", "dried apples", "coal"]
    lines = ["Harbour log of Port Lindow, kept by the night watch.\n"]
    for day in range(1, 33):
        item = goods[day * 5 % len(goods)]
        lines.append(f"Day {day}: {day * 37 % 91 + 3} crates of {item} were unloaded from ship number "
                     f"{day * 11 % 17 + 1}, and the tide stood at {day * 7 % 12 + 1} feet.\n")
    return "".join(lines) + "Summary: the watch concludes that"


def prompts(chat):
    return [
        ("english-short", "The colour of a ripe banana is"),
        ("english-story", "Late one evening, the keeper of the old lighthouse heard three slow knocks, and"),
        ("english-list", "Three things to check before a long bicycle ride:\n1."),
        ("numbers", "17 + 25 = 42\n18 + 26 = 44\n19 + 27 = 46\n20 + 28 ="),
        ("code-python", "def is_leap_year(year: int) -> bool:\n    \"\"\"Gregorian rule.\"\"\"\n    return"),
        ("code-cpp", "// Sums the even numbers of a vector.\nint SumEven(const std::vector<int>& values) {\n"),
        ("json", "{\"order\": 1042, \"items\": [{\"sku\": \"A-7\", \"count\": 3}, {\"sku\":"),
        ("chinese", "春天来了，公园里的花都开了，孩子们"),
        ("korean", "오늘 아침에 나는 도서관에 가서 책을"),
        ("emoji", "🚀🌍 Weather report: ☀️ today, 🌧️ tomorrow, and"),
        ("markup", "<ul>\n  <li>first</li>\n  <li>second</li>\n  <li>"),
        ("spaces", "a\tb\n\n\n   c    d\r\n"),
        ("chat-question", chat([{"role": "user", "content": "Why does ice float on water?"}])),
        ("chat-turns", chat([
            {"role": "system", "content": "You answer in one short sentence."},
            {"role": "user", "content": "Which is heavier, iron or wood?"},
            {"role": "assistant", "content": "Iron is heavier than wood."},
            {"role": "user", "content": "And which of them floats? 🙂"}])),
        ("long-report", long_report()),
    ]


def tokenizer(path):
    """The GGUF's own byte-level BPE: digits alone, then GPT-2's pattern."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    fields = GGUFReader(path).fields
    tokens, types, merges = (fields["tokenizer.ggml." + name].contents()
                             for name in ("tokens", "token_type", "merges"))
    made = Tokenizer(models.BPE(vocab={text: i for i, text in enumerate(tokens)},
                                merges=[tuple(merge.split(" ")) for merge in merges]))
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(text, special=True, normalized=False)
                             for text, kind in zip(tokens, types) if kind == 3])
    return made, fields["tokenizer.chat_template"].contents()


def load(path):
    folder, name = os.path.split(os.path.abspath(path))
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=name, dtype=torch.float32, attn_implementation="eager")
    return model.eval()


def greedy(model, ids):
    """STEPS greedy tokens after `ids` and the margin between the two best logits of each step."""
    out = model(torch.tensor([ids]), use_cache=True)
    tokens, margins = [], []
    for step in range(STEPS):
        best = torch.topk(out.logits[0, -1], 2)
        tokens.append(int(best.indices[0]))
        margins.append(float(best.values[0] - best.values[1]))
        if step + 1 < STEPS:
            out = model(torch.tensor([tokens[-1:]]), past_key_values=out.past_key_values, use_cache=True)
    return tokens, margins


def smollm2(path, out_path):
    import jinja2
    made, template = tokenizer(path)
    render = jinja2.Environment().from_string(template).render
    model = load(path)
    cases = []
    for name, text in prompts(lambda messages: render(messages=messages, add_generation_prompt=True)):
        ids = made.encode(text, add_special_tokens=False).ids
        tokens, margins = greedy(model, ids)
        cases.append({"name": name, "prompt_ids": ids, "greedy_ids": tokens,
                      "margins": [float(f"{margin:.6g}") for margin in margins]})
        print(f"{name:16} {len(ids):5} prompt tokens, least margin {min(margins):.4g}: "
              f"{made.decode(tokens)[:60]!r}", flush=True)
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    write(out_path, {"model_sha256": digest, "steps": STEPS, "versions": versions(), "cases": cases})


# Arguments of the generator. Every pair of {heads equal, grouped} x {tied, not} x {64, 128} occurs.
TINY = [
    {"heads": 4, "kv-heads": 4, "head-dim": 64, "tied-head": "true", "weights": "F32", "embedding": "F32"},
    {"heads": 4, "kv-heads": 2, "head-dim": 64, "tied-head": "false", "weights": "Q4_1", "embedding": "Q8_0"},
    {"hidden": 192, "heads": 6, "kv-heads": 2, "head-dim": 64, "tied-head": "true", "weights": "Q8_0", "embedding": "Q8_0"},
    {"heads": 2, "kv-heads": 2, "head-dim": 128, "tied-head": "false", "weights": "F32", "embedding": "Q4_1"},
    {"hidden": 192, "heads": 6, "kv-heads": 3, "head-dim": 128, "tied-head": "true", "weights": "Q4_1", "embedding": "Q8_0"},
]
TINY_TOKENS = 300  # beyond one attention split of 256 slots
TINY_ROWS = [0, 1, 31, 32, 255, 256, 299]
TINY_IDS = [0, 1, 17, 100, 255, 256, 500, 511]


def tiny(program, out_path):
    cases = []
    for number, options in enumerate(TINY):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tiny.gguf")
            arguments = [f"--{key}={value}" for key, value in options.items()]
            subprocess.run([program, path, f"--seed={number + 1}", *arguments], check=True)
            with open(path, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            model = load(path)
        config = model.config
        assert config.head_dim == options["head-dim"], config
        ids = [(i * 7919 + 13) % 512 for i in range(TINY_TOKENS)]
        logits = model(torch.tensor([ids])).logits[0]
        cases.append({"options": options, "seed": number + 1, "model_sha256": digest, "prompt_ids": ids,
                      "rows": TINY_ROWS, "ids": TINY_IDS,
                      "logits": [[float(f"{float(logits[row, i]):.7g}") for i in TINY_IDS]
                                 for row in TINY_ROWS],
                      "argmax": [int(logits[row].argmax()) for row in TINY_ROWS]})
        print(options, f"largest logit {float(logits.abs().max()):.3f}", flush=True)
    write(out_path, {"versions": versions(), "cases": cases})


def versions():
    return {"torch": torch.__version__, "transformers": transformers.__version__}


def write(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("smollm2", "tiny"):
        sys.exit(__doc__)
    with torch.no_grad():
        (smollm2 if sys.argv[1] == "smollm2" else tiny)(sys.argv[2], sys.argv[3])
