#!/usr/bin/env python3
"""Block identities computed from the written definition alone (hashlib and hmac): identity_vectors.json.

usage: make_vectors.py > identity_vectors.json
"""
import hashlib
import hmac
import json
import struct

CHUNK = 64 << 20
RUN = 32


def u32(n):
    return struct.pack("<I", n)


def u64(n):
    return struct.pack("<Q", n)


def lp(data):
    return u32(len(data)) + data


def sha(data):
    return hashlib.sha256(data).digest()


def f32(x):
    return struct.pack(">f", x).hex()


def content(data):
    return sha(b"".join(sha(data[i:i + CHUNK]) for i in range(0, len(data), CHUNK)))


def weights(files, config):
    text = b"pagoda.weights.v1" + u32(len(files))
    for name in sorted(files, key=lambda n: n.encode()):
        text += lp(name.encode()) + content(files[name])
    lines = "".join(f"{k}={config[k]}\n" for k in sorted(config))
    return sha(text + lp(lines.encode()))


def space(weights_digest, adapter, kv_format, block_tokens, layout, rope, numerics):
    return sha(b"pagoda.space.v1" + lp(weights_digest) + lp(adapter) + lp(kv_format.encode())
               + u32(block_tokens) + lp(sha(layout.encode())) + lp(rope.encode())
               + lp(numerics.encode()))


def namespace(secret, space_digest, tenant, generation, epoch):
    return hmac.new(secret, b"pagoda.ns.v1" + space_digest + lp(tenant.encode()) + u32(generation)
                    + u64(epoch), hashlib.sha256).digest()


def keys(tenant_ns, shared_ns, shared_tokens, block_tokens, tokens):
    out = []
    previous = bytes(32)
    for i in range(len(tokens) // block_tokens):
        ns = shared_ns if (i + 1) * block_tokens <= shared_tokens else tenant_ns
        block = tokens[i * block_tokens:(i + 1) * block_tokens]
        previous = sha(b"pagoda.blk.v1" + ns + previous + b"".join(map(u32, block)))
        out.append(previous)
    return out


def vector(name, files, config, adapter, kv_format, block_tokens, layout, rope, numerics, secret,
           tenant, generation, epoch, shared_tokens, count, stride):
    w = weights(files, config)
    s = space(w, adapter, kv_format, block_tokens, layout, rope, numerics)
    tokens = [(7 + stride * i) % 49152 for i in range(count)]
    tenant_ns = namespace(secret, s, tenant, generation, epoch)
    shared_ns = namespace(secret, s, "", 0, epoch)
    chain = keys(tenant_ns, shared_ns, shared_tokens, block_tokens, tokens)
    return {
        "name": name,
        "files": [{"name": n, "text": d.decode()} for n, d in files.items()],
        "config": "".join(f"{k}={config[k]}\n" for k in sorted(config)),
        "adapter": adapter.hex(), "kv_format": kv_format, "block_tokens": block_tokens,
        "layout": layout, "rope": rope, "numerics": numerics, "secret": secret.hex(),
        "tenant": tenant, "generation": generation, "epoch": epoch,
        "shared_tokens": shared_tokens, "tokens": {"count": count, "stride": stride},
        "weights_digest": w.hex(), "space": s.hex(), "tenant_namespace": tenant_ns.hex(),
        "shared_namespace": shared_ns.hex(), "keys": [k.hex() for k in chain],
        "anchors": [chain[i - i % RUN].hex() for i in range(len(chain))],
    }


def main():
    bf16 = "k=bf16;v=bf16;scales=;k_group=0;v_group=0;transforms=;skip="
    layout = ("order=group,layer,k,kscale,v,vscale;k=head_dim,token;v=token,head_dim;align=64;"
              "groups=1;layers=30;kv_heads=3;head_dim=64")
    rope = f"type=none;pairing=half;dim=64;theta={f32(100000.0)}"
    print(json.dumps([
        vector("one file, a single tenant", {"": b"weights of a small model"},
               {"hidden_size": 576, "layers": 30, "norm_eps": f32(1e-5)}, b"", bf16, 32, layout,
               rope, "cpu-f32-r1", b"", "", 0, 0, 0, 70, 13),
        vector("several files, an adapter, a tenant, two runs",
               {"model-00002.safetensors": b"second", "model-00001.safetensors": b"first"},
               {"vocab_size": 32000}, sha(b"adapter"),
               "k=int8;v=fp8_e4m3;scales=" + sha(b"scales").hex()
               + ";k_group=64;v_group=0;transforms=hadamard;skip=0,31", 16,
               layout.replace("layers=30", "layers=32"),
               f"type=llama3;pairing=half;dim=128;theta={f32(500000.0)};factor={f32(8.0)}",
               "cpu-int8-r1", b"a secret of the cluster", "acme", 3, 2**40 + 5, 0, 33 * 16, 101),
        vector("a shared range that ends inside the third block", {"": b""}, {}, b"", bf16, 32,
               layout, rope, "cpu-f32-r1", b"\x00\xff\x10", "t\u00fcr", 1, 1, 95, 160, 1),
    ], indent=1, ensure_ascii=True))


if __name__ == "__main__":
    main()
