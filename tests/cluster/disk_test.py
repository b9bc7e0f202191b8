#!/usr/bin/env python3
"""The disk tier on a running cluster: a store whose RAM holds few blocks serves the rest from disk, also after
it was killed, and no token depends on it.

usage: disk_test.py BIN_DIR MODEL [TEST ...]
"""
import os
import random
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

    def test_r70_blocks_come_from_disk_also_after_the_store_was_killed(self):
        with tempfile.TemporaryDirectory() as data_dir:
            flags = ("--data-dir", data_dir, "--disk-bytes", "64MiB", "--ram-bytes", STORE_RAM, *INSIST_ON_LOADING)
            with Cluster(BIN_DIR, MODEL, workers=2, flags=flags) as cluster:
                for seed in range(20):
                    self.ask(cluster, prompt_ids(seed, 330), "worker-0")
                cluster.wait_for_pushes("worker-0")
                self.assertTrue(self.loads_from_disk(cluster, range(20)))
            # A clean stop brought everything to disk; new workers and a new store know of it from there alone.
            with Cluster(BIN_DIR, MODEL, workers=2, flags=flags) as cluster:
                self.assertTrue(self.loads_from_disk(cluster, range(20)))
                os.kill(cluster.pids["kvstore"], signal.SIGKILL)
            with Cluster(BIN_DIR, MODEL, workers=2, flags=flags) as cluster:
                self.assertTrue(self.loads_from_disk(cluster, range(20)))


if __name__ == "__main__":
    MODEL = sys.argv.pop(2)
    BIN_DIR = sys.argv.pop(1)
    STORE_RAM = "2MiB"  # far less than the prompts' blocks
    unittest.main(verbosity=2)
