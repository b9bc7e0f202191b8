#!/usr/bin/env python3
"""The main job on a running cluster: two workers share KV blocks through the store, and the answer does not
depend on where they came from.

usage: sharing_test.py BIN_DIR MODEL
"""
import concurrent.futures
import os
import random
import signal
import sys
import unittest

from cluster import Cluster, eventually

BLOCK_TOKENS = 32


def prompt_ids(seed, length, vocabulary=256):
    return [random.Random(seed * 1000 + i).randrange(vocabulary) for i in range(length)]


def sources(answer):
    usage = answer["usage"]["pagoda"]
    return {key: usage[key] for key in ("computed", "local", "ram", "disk")}


def ids(answer):
    return answer["choices"][0]["token_ids"]


class SharingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN_DIR, MODEL, workers=2).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__(None, None, None)

    def ask(self, prompt, worker=None, **fields):
        return self.cluster.complete(prompt, worker, max_tokens=24, ignore_eos=True, **fields)

    def test_the_second_worker_loads_what_the_first_computed(self):
        prompt = prompt_ids(1, 200)
        first = self.ask(prompt, "worker-0")
        self.assertEqual(first["worker"], "worker-0")
        self.assertEqual(sources(first), {"computed": 200, "local": 0, "ram": 0, "disk": 0})
        self.cluster.wait_for_pushes("worker-0")
        second = self.ask(prompt, "worker-1")
        # At least the last prompt token is computed: floor(199 / 32) = 6 blocks come from the store.
        self.assertEqual(sources(second), {"computed": 8, "local": 0, "ram": 192, "disk": 0})
        self.assertEqual(second["usage"]["prompt_tokens_details"]["cached_tokens"], 192)
        again = self.ask(prompt, "worker-1")
        self.assertEqual(sources(again), {"computed": 8, "local": 192, "ram": 0, "disk": 0})
        alone = self.ask(prompt, "worker-0", cache_scope="none")
        self.assertEqual(sources(alone), {"computed": 200, "local": 0, "ram": 0, "disk": 0})
        self.assertEqual(ids(first), ids(second))
        self.assertEqual(ids(first), ids(again))
        self.assertEqual(ids(first), ids(alone))

    def test_generated_blocks_are_shared_too(self):
        prompt = prompt_ids(2, 40)
        first = self.cluster.complete(prompt, "worker-0", max_tokens=80, ignore_eos=True)
        self.cluster.wait_for_pushes("worker-0")
        longer = prompt + ids(first) + [7]
        second = self.ask(longer, "worker-1")
        # The last sampled token was never an input, so 40 + 79 tokens = 3 full blocks exist.
        self.assertEqual(sources(second)["ram"], 3 * BLOCK_TOKENS)
        self.assertEqual(ids(second), ids(self.ask(longer, "worker-0", cache_scope="none")))

    def test_sampled_answers_depend_on_the_request_alone(self):
        prompt = prompt_ids(3, 70)
        fields = {"temperature": 1.0, "top_p": 0.9, "seed": 11}
        first = self.ask(prompt, "worker-0", **fields)
        self.cluster.wait_for_pushes("worker-0")
        self.assertEqual(ids(first), ids(self.ask(prompt, "worker-1", **fields)))
        self.assertEqual(ids(first), ids(self.ask(prompt, "worker-1", cache_scope="none", **fields)))
        self.assertNotEqual(ids(first), ids(self.ask(prompt, "worker-0", **{**fields, "seed": 12})))

    def test_r2_many_requests_at_once_give_the_tokens_of_lone_runs(self):
        shared = prompt_ids(4, 96)
        prompts = [shared + prompt_ids(100 + i, 1 + 7 * i % 60) for i in range(32)]
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            together = list(pool.map(self.ask, prompts))
        for prompt, answer in zip(prompts, together):
            self.assertEqual(ids(answer), ids(self.ask(prompt, cache_scope="none")))

    def test_cache_scope_none_neither_reads_nor_leaves_anything(self):
        prompt = prompt_ids(5, 100)
        self.ask(prompt, "worker-0", cache_scope="none")
        self.assertEqual(sources(self.ask(prompt, "worker-0"))["computed"], 100)

    def test_shared_and_tenant_scopes_do_not_meet(self):
        prompt = prompt_ids(6, 100)
        self.ask(prompt, "worker-0", cache_scope="shared")
        self.cluster.wait_for_pushes("worker-0")
        shared = self.ask(prompt, "worker-1", cache_scope="shared")
        self.assertEqual(sources(shared)["ram"], 96)

    def test_a_client_that_goes_away_frees_its_sequence(self):
        stream = self.cluster.stream("/v1/completions", {
            "model": "default", "prompt": prompt_ids(7, 40), "max_tokens": 400, "ignore_eos": True},
            {"x-pagoda-worker": "worker-0"})
        next(stream)
        stream.close()
        eventually(lambda: self.cluster.worker_metric("worker-0", "num_requests_running") == 0, "request runs on")

    def test_unpinned_requests_go_where_their_prefix_is(self):
        prompt = prompt_ids(8, 160)
        home = self.ask(prompt)["worker"]
        for _ in range(6):
            answer = self.ask(prompt)
            self.assertEqual(answer["worker"], home)
            self.assertEqual(sources(answer)["local"], 128)


class StoreDeathTest(unittest.TestCase):
    def test_everything_still_answers_when_the_store_is_killed(self):
        with Cluster(BIN_DIR, MODEL, workers=1) as cluster:
            prompt = prompt_ids(1, 150)
            before = cluster.complete(prompt, max_tokens=16, ignore_eos=True)
            frozen = cluster.pids["kvstore"]
            os.kill(frozen, signal.SIGSTOP)
            try:
                during = cluster.complete(prompt_ids(1, 150) + [3], max_tokens=16, ignore_eos=True)
                other = cluster.complete(prompt_ids(2, 150), max_tokens=16, ignore_eos=True)
            finally:
                os.kill(frozen, signal.SIGCONT)
            self.assertEqual(ids(other), ids(cluster.complete(prompt_ids(2, 150), max_tokens=16, ignore_eos=True,
                                                              cache_scope="none")))
            self.assertEqual(ids(during), ids(cluster.complete(prompt_ids(1, 150) + [3], max_tokens=16,
                                                               ignore_eos=True, cache_scope="none")))
            self.assertEqual(ids(before), ids(cluster.complete(prompt, max_tokens=16, ignore_eos=True)))


class SmallPoolTest(unittest.TestCase):
    def test_a_pool_that_is_too_small_preempts_and_changes_no_token(self):
        with Cluster(BIN_DIR, MODEL, workers=1, flags=SMALL_POOL) as cluster:
            prompts = [prompt_ids(i, 90) for i in range(8)]

            def ask(prompt):
                return cluster.complete(prompt, max_tokens=100, ignore_eos=True)

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                together = list(pool.map(ask, prompts))
            self.assertGreater(cluster.worker_metric("worker-0", "num_preemptions_total"), 0)
            self.assertGreater(sum(a["usage"]["pagoda"]["recomputed"] for a in together), 0)
            for prompt, answer in zip(prompts, together):
                self.assertEqual(ids(answer), ids(ask(prompt)))


if __name__ == "__main__":
    MODEL = sys.argv.pop(2)
    BIN_DIR = sys.argv.pop(1)
    SMALL_POOL = ("--kv-cache-bytes", "512KiB", "--kv-offload", "off")
    unittest.main(verbosity=2)
