#!/usr/bin/env python3
"""Writes smollm2.json: ids of STRINGS and of chats, by Hugging Face on SmolLM2's GGUF.

usage: make_smollm2.py SmolLM2-135M-Instruct.Q4_1.gguf    (needs gguf, tokenizers, transformers, jinja2)

The tokenizer is byte-level BPE; each decimal digit is a piece of its own, ByteLevel cuts the rest. The model's
tokenizer.json says Digits(individual_digits=True), which also splits off fractions and the like (categories No and Nl);
transformers, reading the GGUF, does not. Where the two differ, these ids follow transformers. Chats go through PreTrainedTokenizerFast.apply_chat_template. For HOSTILE chats the expectation is made
from the template's literal pieces and the messages: control tokens are looked up in the former only.
"""
import json
import pathlib
import sys

import tokenizers
import transformers
from gguf import GGUFReader
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

import golden
from strings import CHATS, HOSTILE, STRINGS

HERE = pathlib.Path(__file__).parent


def load(path):
    reader = GGUFReader(path)
    field = lambda key: reader.fields[key].contents()
    tokens = field("tokenizer.ggml.tokens")
    types = field("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in field("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\p{Nd}"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False)
                                  for token, kind in zip(tokens, types) if kind == 3])
    return tokenizer, field("tokenizer.chat_template")


def without_control(path):
    """The same tokenizer with no added tokens: everything is text."""
    tokenizer, _ = load(path)
    plain = json.loads(tokenizer.to_str())
    plain["added_tokens"] = []
    return Tokenizer.from_str(json.dumps(plain))


def main():
    path = sys.argv[1]
    tokenizer, template = load(path)
    plain = without_control(path)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|im_start|>",
                                                eos_token="<|im_end|>", unk_token="<|endoftext|>",
                                                pad_token="<|im_end|>")
    fast.chat_template = template
    encode = lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    texts = [{"text": text, "parsed": encode(text),
              "spelled": plain.encode(text, add_special_tokens=False).ids,
              "decoded": tokenizer.decode(encode(text), skip_special_tokens=True)} for text in STRINGS]
    chats = []
    for messages in CHATS:
        for generate in (True, False):
            chat = [{"role": role, "content": content} for role, content in messages]
            ids = fast.apply_chat_template(chat, add_generation_prompt=generate, tokenize=True,
                                           return_dict=False)
            chats.append({"messages": chat, "add_generation_prompt": generate, "ids": list(ids)})
    for messages in HOSTILE:
        chats.append({"messages": [{"role": role, "content": content} for role, content in messages],
                      "add_generation_prompt": True, "ids": hostile_ids(messages, template, tokenizer, plain)})
    out = {"made_by": {"tokenizers": tokenizers.__version__, "transformers": transformers.__version__},
           "texts": texts, "chats": chats}
    golden.write(HERE / "smollm2.json", out)
    print(len(texts), "texts,", len(chats), "chats")


def hostile_ids(messages, template, tokenizer, plain):
    """Between the template's control tokens, text is spelled out whole, as BPE sees it."""
    rendered = render(messages, template)
    ids, text = [], ""
    for piece, own in rendered:
        if not own:
            text += piece
            continue
        while piece:
            found = min(((piece.find(t), t) for t in ("<|im_start|>", "<|im_end|>") if t in piece), default=None)
            if found is None:
                text += piece
                break
            at, token = found
            text += piece[:at]
            ids += plain.encode(text, add_special_tokens=False).ids + [tokenizer.token_to_id(token)]
            text, piece = "", piece[at + len(token):]
    return ids + plain.encode(text, add_special_tokens=False).ids


def render(messages, template):
    """Pieces (text, whether the template wrote it), by marking messages with private-use characters."""
    import jinja2
    env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    known = ("system", "user", "assistant")
    mark = lambda s: "\ue000" + s + "\ue001"
    chat = [{"role": role if role in known else mark(role), "content": mark(content)} for role, content in messages]
    text = env.from_string(template).render(messages=chat, add_generation_prompt=True)
    pieces = []
    for part in text.split("\ue000"):
        inside, closed, outside = part.partition("\ue001")
        pieces += [(inside, False), (outside, True)] if closed else [(part, True)]
    return pieces


if __name__ == "__main__":
    main()
