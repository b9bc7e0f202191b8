#!/usr/bin/env python3
"""The disk tier on a running cluster: a store whose RAM holds few blocks serves the rest from disk, also after
it was killed, and no token depends on it.

usage: disk_test.py BIN_DIR MODEL [TEST ...]
"""
import os
import random
import re
import signal
import sys
import tempfile
import unittest

from cluster import INSIST_ON_LOADING, Cluster, eventually


def prompt_ids(seed, length, vocabulary=256):
    return [random.Random(seed * 1000 + i).randrange(vocabulary) for i in range(length)]


def ids(answer):
    return answer["choices"][0]["token_ids"]


class DiskTest(unittest.TestCase):
    def ask(self, cluster, prompt, worker=None, **fields):
        return cluster.complete(prompt, worker, max_tokens=8, ignore_eos=True, **fields)

    def loads_from_disk(self, cluster, seeds):
        """Whether asking for one of the prompts reads from disk; every answer must be the computed one."""
        for seed in seeds:
            prompt = prompt_ids(seed, 330)
            loaded = self.ask(cluster, prompt, "worker-1")
            alone = self.ask(cluster, prompt, "worker-1", cache_scope="none")
            self.assertEqual(ids(loaded), ids(alone))
            if loaded["usage"]["pagoda"]["disk"] > 0:
                return True
        return False

    def store_blocks(self, cluster, tier):
        store = re.search(r'"msg":"ready","child":"kvstore".*?"http":"([^"]+)"', cluster.log_text())[1]
        return cluster.metric("kvstore_blocks", store, tier=tier)

    def check_tiers(self, cluster):
        """That the last answers were loaded from disk through a RAM tier of the size that was meant."""
        self.assertGreater(cluster.worker_metric("worker-1", "prompt_tokens_by_source_total", source="disk"), 0)
        self.assertGreater(self.store_blocks(cluster, "disk"), 0)
        self.assertLessEqual(self.store_blocks(cluster, "ram"), RAM_BLOCKS)

    def test_r70_blocks_come_from_disk_also_after_the_store_was_killed(self):
        with tempfile.TemporaryDirectory() as data_dir:
            flags = ("--data-dir", data_dir, "--disk-bytes", "64MiB", "--ram-bytes", STORE_RAM, *INSIST_ON_LOADING)
            with Cluster(BIN_DIR, MODEL, workers=2, flags=flags) as cluster:
                for seed in range(20):
                    self.ask(cluster, prompt_ids(seed, 330), "worker-0")
                cluster.wait_for_pushes("worker-0")
                self.assertTrue(self.loads_from_disk(cluster, range(20)))
                self.check_tiers(cluster)
            # A clean stop brought everything to disk; new workers and a new store know of it from there alone.
            with Cluster(BIN_DIR, MODEL, workers=2, flags=flags) as cluster:
                self.assertTrue(self.loads_from_disk(cluster, range(20)))
                self.check_tiers(cluster)
                os.kill(cluster.pids["kvstore"], signal.SIGKILL)
            with Cluster(BIN_DIR, MODEL, workers=2, flags=flags) as cluster:
                self.assertTrue(self.loads_from_disk(cluster, range(20)))
                self.check_tiers(cluster)


if __name__ == "__main__":
    MODEL = sys.argv.pop(2)
    BIN_DIR = sys.argv.pop(1)
    RAM_BLOCKS = 4  # a prompt has ten
    # Of the tiny model (tests/CMakeLists.txt): 12 layers' keys and values of 32 tokens, and the record's header.
    BLOCK_BYTES = 192 * 1024 + 256
    STORE_RAM = str(RAM_BLOCKS * BLOCK_BYTES)
    unittest.main(verbosity=2)
