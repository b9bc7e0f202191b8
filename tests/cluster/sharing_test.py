#!/usr/bin/env python3
"""The main job on a running cluster: two workers share KV blocks through the store, and the answer does not
depend on where they came from.

usage: sharing_test.py BIN_DIR MODEL [TEST ...]
MODEL may be "smollm2": the file that PAGODA_TEST_MODEL names.
"""
import concurrent.futures
import os
import re
import signal
import sys
import unittest

from cluster import INSIST_ON_LOADING, Cluster, eventually, ids, new_prompt, prompt_ids, sources, until_loaded

BLOCK_TOKENS = 32


class SharingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(BIN_DIR, MODEL, workers=2, flags=INSIST_ON_LOADING))

    def ask(self, prompt, worker=None, **fields):
        return self.cluster.complete(prompt, worker, max_tokens=24, ignore_eos=True, **fields)

    def computed_here_asked_there(self, prompt, **fields):
        """The answers of worker-0, which computes, and then of worker-1."""
        first = self.ask(prompt, "worker-0", **fields)
        self.cluster.wait_for_pushes("worker-0")
        return first, self.ask(prompt, "worker-1", **fields)

    def test_r14_the_second_worker_loads_what_the_first_computed(self):
        def attempt():
            prompt = new_prompt(200)
            return prompt, *self.computed_here_asked_there(prompt)

        # At least the last prompt token is computed: floor(199 / 32) = 6 blocks come from the store.
        prompt, first, second = until_loaded(attempt, 6 * BLOCK_TOKENS)
        self.assertEqual(first["worker"], "worker-0")
        self.assertEqual(sources(first), {"computed": 200, "local": 0, "ram": 0, "disk": 0})
        self.assertEqual(sources(second), {"computed": 8, "local": 0, "ram": 192, "disk": 0})
        self.assertEqual(second["usage"]["prompt_tokens_details"]["cached_tokens"], 192)
        again = self.ask(prompt, "worker-1")
        self.assertEqual(sources(again), {"computed": 8, "local": 192, "ram": 0, "disk": 0})
        alone = self.ask(prompt, "worker-0", cache_scope="none")
        self.assertEqual(sources(alone), {"computed": 200, "local": 0, "ram": 0, "disk": 0})
        for other in (second, again, alone):
            self.assertEqual(ids(other), ids(first))

    def test_generated_blocks_are_shared_too(self):
        def attempt():
            prompt = new_prompt(40)
            first = self.cluster.complete(prompt, "worker-0", max_tokens=80, ignore_eos=True)
            self.cluster.wait_for_pushes("worker-0")
            longer = prompt + ids(first) + [7]
            return longer, self.ask(longer, "worker-1")

        # The last sampled token was never an input, so 40 + 79 tokens = 3 full blocks exist.
        longer, second = until_loaded(attempt, 3 * BLOCK_TOKENS)
        self.assertEqual(ids(second), ids(self.ask(longer, "worker-0", cache_scope="none")))

    def test_sampled_answers_depend_on_the_request_alone(self):
        prompt = prompt_ids(3, 70)
        fields = {"temperature": 1.0, "top_p": 0.9, "seed": 11}
        first, second = self.computed_here_asked_there(prompt, **fields)
        self.assertEqual(ids(first), ids(second))
        self.assertEqual(ids(first), ids(self.ask(prompt, "worker-1", cache_scope="none", **fields)))
        self.assertNotEqual(ids(first), ids(self.ask(prompt, "worker-0", **{**fields, "seed": 12})))

    def test_r2_many_requests_at_once_give_the_tokens_of_lone_runs(self):
        shared = prompt_ids(4, 96)
        prompts = [shared + prompt_ids(300 + i, 1 + 7 * i % 60) for i in range(32)]
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            together = list(pool.map(self.ask, prompts))
        for prompt, answer in zip(prompts, together):
            self.assertEqual(ids(answer), ids(self.ask(prompt, cache_scope="none")))

    def test_cache_scope_none_neither_reads_nor_leaves_anything(self):
        prompt = prompt_ids(5, 100)
        self.ask(prompt, "worker-0", cache_scope="none")
        self.assertEqual(sources(self.ask(prompt, "worker-0"))["computed"], 100)

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


class RecheckTest(unittest.TestCase):
    def test_blocks_that_another_worker_computed_pass_their_recheck(self):
        """Each loaded block is computed again, and the bytes are equal."""
        with Cluster(BIN_DIR, MODEL, workers=2, flags=("--kv-recheck-one-in", "1", *INSIST_ON_LOADING)) as cluster:
            def ask(prompt, worker):
                return cluster.complete(prompt, worker, max_tokens=24, ignore_eos=True)

            def attempt():
                prompt = new_prompt(200)
                first = ask(prompt, "worker-0")
                cluster.wait_for_pushes("worker-0")
                return first, ask(prompt, "worker-1")

            def rechecks(result):
                return cluster.worker_metric("worker-1", "kv_recheck_blocks_total", result=result)

            first, second = until_loaded(attempt, 6 * BLOCK_TOKENS)
            self.assertEqual(ids(second), ids(first))
            eventually(lambda: rechecks("ok") > 0, "a loaded block was rechecked")
            self.assertEqual(rechecks("mismatch"), 0)


class StoreDeathTest(unittest.TestCase):
    """A store that is frozen, killed, or never there costs time and no token."""

    def check(self, cluster, seed):
        prompt = prompt_ids(seed, 150)
        answer = cluster.complete(prompt, max_tokens=16, ignore_eos=True)
        alone = cluster.complete(prompt, max_tokens=16, ignore_eos=True, cache_scope="none")
        self.assertEqual(ids(answer), ids(alone))

    def test_everything_still_answers_when_the_store_is_frozen_and_then_killed(self):
        with Cluster(BIN_DIR, MODEL, workers=1) as cluster:
            self.check(cluster, 1)
            os.kill(cluster.pids["kvstore"], signal.SIGSTOP)
            self.check(cluster, 2)
            os.kill(cluster.pids["kvstore"], signal.SIGKILL)
            self.check(cluster, 3)
            self.check(cluster, 3)


class SmallPoolTest(unittest.TestCase):
    def test_a_pool_that_is_too_small_preempts_and_changes_no_token(self):
        with Cluster(BIN_DIR, MODEL, workers=1, flags=SMALL_POOL) as cluster:
            # Twice what the pool holds: 190 tokens are 6 blocks.
            pool_blocks = int(re.search(r'"kv_blocks":(\d+)', cluster.log_text())[1])
            prompts = [prompt_ids(i, 90) for i in range(max(8, pool_blocks // 3))]

            def ask(prompt):
                return cluster.complete(prompt, max_tokens=100, ignore_eos=True)

            with concurrent.futures.ThreadPoolExecutor(len(prompts)) as pool:
                together = list(pool.map(ask, prompts))
            self.assertGreater(cluster.worker_metric("worker-0", "num_preemptions_total"), 0)
            self.assertGreater(sum(a["usage"]["pagoda"]["recomputed"] for a in together), 0)
            for prompt, answer in zip(prompts, together):
                self.assertEqual(ids(answer), ids(ask(prompt)))


if __name__ == "__main__":
    MODEL = sys.argv.pop(2)
    if MODEL == "smollm2":
        MODEL = os.environ["PAGODA_TEST_MODEL"]
    BIN_DIR = sys.argv.pop(1)
    SMALL_POOL = ("--kv-cache-bytes", "2MiB", "--kv-offload", "off")
    unittest.main(verbosity=2)
