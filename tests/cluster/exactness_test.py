#!/usr/bin/env python3
"""The exactness contract on a running cluster, for each KV format: the same tokens from an empty cache, from the
worker's own pool, from the store, and in a batch. (tests/exactness compares logits, and more paths.)

usage: exactness_test.py BIN_DIR MODEL [TEST ...]
"""
import concurrent.futures
import sys
import unittest

from cluster import INSIST_ON_LOADING, Cluster, eventually, ids, new_prompt, sources, until_loaded


class ExactnessTest(unittest.TestCase):
    def check_format(self, kv_format):
        flags = ("--kv-cache-dtype", kv_format, *INSIST_ON_LOADING)
        with Cluster(BIN_DIR, MODEL, workers=2, flags=flags) as cluster:
            self.assertEqual(cluster.log_text().count(f'"kv_dtype":"{kv_format}"'), 2, "both workers say so")
            self.cluster = cluster
            self.check_sources()
            self.check_sources(temperature=0.9, top_p=0.9, seed=5)
            self.check_batch()

    def check_sources(self, **fields):
        fields |= {"max_tokens": 40, "ignore_eos": True}

        def attempt():
            prompt = new_prompt(200)
            first = self.cluster.complete(prompt, "worker-0", **fields)
            self.cluster.wait_for_pushes("worker-0")
            return prompt, first, self.cluster.complete(prompt, "worker-1", **fields)

        prompt, computed, from_ram = until_loaded(attempt, 192)
        local = self.cluster.complete(prompt, "worker-1", **fields)
        uncached = self.cluster.complete(prompt, "worker-1", cache_scope="none", **fields)
        self.assertEqual(sources(uncached), {"computed": 200, "local": 0, "ram": 0, "disk": 0})
        self.assertEqual(sources(computed), {"computed": 200, "local": 0, "ram": 0, "disk": 0})
        self.assertEqual(sources(local), {"computed": 8, "local": 192, "ram": 0, "disk": 0})
        self.assertEqual(sources(from_ram), {"computed": 8, "local": 0, "ram": 192, "disk": 0})
        for answer in (computed, from_ram, local):
            self.assertEqual(ids(answer), ids(uncached))

    def check_batch(self):
        def ask(prompt):
            return self.cluster.complete(prompt, "worker-0", max_tokens=150, ignore_eos=True, cache_scope="none")

        prompts = [new_prompt(20 + 11 * i) for i in range(12)]
        together = self.together(ask, prompts)
        for prompt, answer in zip(prompts, together):
            self.assertEqual(sources(answer)["computed"], len(prompt))
            self.assertEqual(ids(answer), ids(ask(prompt)))

    def together(self, ask, prompts):
        """The answers of an attempt in which at least 8 requests were seen in the batch at once."""
        answers = []

        def attempt():
            most = 0
            with concurrent.futures.ThreadPoolExecutor(len(prompts)) as pool:
                answers[:] = [pool.submit(ask, prompt) for prompt in prompts]
                while not all(answer.done() for answer in answers):
                    most = max(most, self.cluster.worker_metric("worker-0", "num_requests_running"))
            return most >= 8
        eventually(attempt, "8 requests are in the batch at once")
        return [answer.result() for answer in answers]

    def test_r5_r6_f32_gives_the_same_tokens_wherever_its_blocks_come_from(self):
        self.check_format("f32")

    def test_r5_r6_bf16_gives_the_same_tokens_wherever_its_blocks_come_from(self):
        self.check_format("bf16")

    def test_r5_r6_fp16_gives_the_same_tokens_wherever_its_blocks_come_from(self):
        self.check_format("fp16")


if __name__ == "__main__":
    MODEL = sys.argv.pop(2)
    BIN_DIR = sys.argv.pop(1)
    unittest.main(verbosity=2)
