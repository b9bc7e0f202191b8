#!/usr/bin/env python3
"""The disk tier on a running cluster: a store whose RAM holds few blocks serves the rest from disk, also after
it was killed, and no token depends on it.

usage: disk_test.py BIN_DIR MODEL [TEST ...]
"""
import itertools
import os
import re
import signal
import sys
import tempfile
import unittest

from cluster import INSIST_ON_LOADING, Cluster, eventually, ids, prompt_ids, sources

PROMPTS = 20
PROMPT_TOKENS = 330
PROMPT_BLOCKS = PROMPT_TOKENS // 32


class DiskTest(unittest.TestCase):
    def ask(self, cluster, number, worker, **fields):
        return cluster.complete(prompt_ids(number, PROMPT_TOKENS), worker, max_tokens=8, ignore_eos=True, **fields)

    def check_loads_from_disk(self, cluster):
        """Asks for one prompt after the other until one is read from disk; every answer must be the computed one."""
        numbers = itertools.cycle(range(PROMPTS))

        def loaded():
            number = next(numbers)
            answer = self.ask(cluster, number, "worker-1")
            alone = self.ask(cluster, number, "worker-1", cache_scope="none")
            self.assertEqual(ids(answer), ids(alone))
            return sources(answer)["disk"] > 0
        eventually(loaded, "a prompt is read from disk")
        self.assertGreater(self.store_blocks(cluster, "disk"), 0)
        self.assertLess(self.store_blocks(cluster, "ram"), PROMPT_BLOCKS, "the RAM tier is larger than was meant")

    def store_blocks(self, cluster, tier):
        store = re.search(r'"msg":"ready","child":"kvstore".*?"http":"([^"]+)"', cluster.log_text())[1]
        return cluster.metric("kvstore_blocks", store, tier=tier)

    def test_r70_blocks_come_from_disk_also_after_the_store_was_killed(self):
        with tempfile.TemporaryDirectory() as data_dir:
            flags = ("--data-dir", data_dir, "--disk-bytes", "64MiB", *SMALL_RAM, *INSIST_ON_LOADING)
            with Cluster(BIN_DIR, MODEL, workers=2, flags=flags) as cluster:
                for number in range(PROMPTS):
                    self.ask(cluster, number, "worker-0")
                cluster.wait_for_pushes("worker-0")
                self.check_loads_from_disk(cluster)
            # A clean stop brought everything to disk; new workers and a new store know of it from there alone.
            flags += ("--kv-offload", "off")
            with Cluster(BIN_DIR, MODEL, workers=2, flags=flags) as cluster:
                self.check_loads_from_disk(cluster)
                os.kill(cluster.pids["kvstore"], signal.SIGKILL)
            with Cluster(BIN_DIR, MODEL, workers=2, flags=flags) as cluster:
                self.check_loads_from_disk(cluster)


if __name__ == "__main__":
    MODEL = sys.argv.pop(2)
    BIN_DIR = sys.argv.pop(1)
    # The store's RAM holds five blocks of the tiny model, a prompt has ten; a worker forgets what it was asked for
    # some prompts ago, so that it asks the store again.
    SMALL_RAM = ("--ram-bytes", "1MiB", "--kv-cache-bytes", "8MiB")
    unittest.main(verbosity=2)
