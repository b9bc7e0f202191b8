#!/usr/bin/env python3
"""Time to first token while the KV store is broken, beside that of a cluster without one. Run it on a quiet machine:
it is no test, though it says whether the bound holds: median <= 1.5 x the median without a store + 100 ms.

usage: store_fault_ttft.py BIN_DIR MODEL [--repeats N] [--prompt-tokens N] [--json FILE]
MODEL may be "smollm2": the file that PAGODA_TEST_MODEL names.

Each row has a fresh cluster of two workers. worker-0 gives the prompts to the store; then the fault begins; some
requests go first, so that a breaker has opened; then worker-1 is asked in turn with a worker that has no store.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from store_cluster import StoreCluster

REAL, FAULTY = "pagoda-kvstore", "faulty_kvstore"
# name, store program, what is done to the store
ROWS = [
    ("healthy", FAULTY, None),
    ("frozen", REAL, lambda c: c.store.send(signal.SIGSTOP)),
    ("killed", REAL, lambda c: c.store.end(signal.SIGKILL)),
    *((fault, FAULTY, lambda c, fault=fault: c.set_fault(fault))
      for fault in ("slow 20", "slow 200", "slow_reads 1000", "refuse", "full", "corrupt", "truncated", "foreign",
                    "tenant", "other", "cut", "lying")),
]
BOUND_FACTOR, BOUND_EXTRA_S = 1.5, 0.1
WARM_UPS = 6
VOCABULARY = 256


def prompts(count, tokens, seed):
    chance = random.Random(seed)
    return [[chance.randrange(VOCABULARY) for _ in range(tokens)] for _ in range(count)]


def measure(row, number, alone, arguments):
    """Times to first token in seconds: without a store, and with the broken one."""
    _, store, break_store = row
    asked = prompts(WARM_UPS + arguments.repeats, arguments.prompt_tokens, number)
    with StoreCluster(arguments.bin_dir, arguments.model, store=store) as cluster:
        for prompt in asked:
            cluster.complete(prompt, "worker-0", max_tokens=1)
        cluster.wait_for_pushes("worker-0")
        if break_store:
            break_store(cluster)
        for prompt in asked[:WARM_UPS]:
            cluster.time_to_first_token(prompt, "worker-1")
        without, broken = [], []
        for prompt in asked[WARM_UPS:]:
            without.append(alone.time_to_first_token(prompt, "worker-0"))
            broken.append(cluster.time_to_first_token(prompt, "worker-1"))
    return without, broken


def summary(name, without, broken):
    base, median = statistics.median(without), statistics.median(broken)
    return {"fault": name, "without_store_s": without, "ttft_s": broken, "median_without_store_s": base,
            "median_s": median, "min_s": min(broken), "max_s": max(broken),
            "holds": median <= BOUND_FACTOR * base + BOUND_EXTRA_S}


def line(row):
    return (f"{row['fault']:<16} {1000 * row['median_s']:8.0f} {1000 * row['min_s']:8.0f} {1000 * row['max_s']:8.0f}"
            f" {1000 * row['median_without_store_s']:14.0f} {row['median_s'] / row['median_without_store_s']:7.2f}"
            f"   {'yes' if row['holds'] else 'NO'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("model")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--prompt-tokens", type=int, default=512)
    parser.add_argument("--json", help="also write all times here")
    arguments = parser.parse_args()
    if arguments.model == "smollm2":
        arguments.model = os.environ["PAGODA_TEST_MODEL"]
    print("TTFT in ms       median      min      max  without store   ratio   <= 1.5x + 100 ms")
    rows = []
    with StoreCluster(arguments.bin_dir, arguments.model, workers=1,
                      worker_flags=("--kv-offload", "off", "--kv-load", "recompute")) as alone:
        for prompt in prompts(WARM_UPS, arguments.prompt_tokens, "alone"):
            alone.time_to_first_token(prompt, "worker-0")
        for number, row in enumerate(ROWS):
            rows.append(summary(row[0], *measure(row, number, alone, arguments)))
            print(line(rows[-1]), flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
