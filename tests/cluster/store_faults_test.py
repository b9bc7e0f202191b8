#!/usr/bin/env python3
"""No fault of the KV store changes a token or makes anybody wait: a running cluster around a store that is killed,
frozen, slow, refusing, full, or answers with blocks that are not what they should be.

usage: store_faults_test.py BIN_DIR MODEL [TEST ...]
"""
import concurrent.futures
import signal
import sys
import threading
import time
import unittest

from cluster import INSIST_ON_LOADING, ApiError, eventually, ids, new_prompt, sources
from store_cluster import StoreCluster

BLOCK_TOKENS = 32
PROMPT_TOKENS = 200
LOADABLE_TOKENS = PROMPT_TOKENS // BLOCK_TOKENS * BLOCK_TOKENS
# Only ends hangs: with a loaded sanitizer build a request takes seconds, whatever the store does.
REQUEST_LIMIT_S = 60


def from_store(answer):
    return sources(answer)["ram"]


class StoreFaultTest(unittest.TestCase):
    STORE = None
    WORKER_FLAGS = ()

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(StoreCluster(
            BIN_DIR, MODEL, store=cls.STORE, worker_flags=INSIST_ON_LOADING + cls.WORKER_FLAGS))

    def ask(self, prompt, worker, **fields):
        begin = time.monotonic()
        answer = self.cluster.complete(prompt, worker, max_tokens=16, ignore_eos=True, **fields)
        self.assertLess(time.monotonic() - begin, REQUEST_LIMIT_S, "a request waited for the store")
        return answer

    def exact(self, prompt, worker):
        """An answer that has been compared with one that no cache was near."""
        answer = self.ask(prompt, worker)
        self.assertEqual(ids(answer), ids(self.ask(prompt, worker, cache_scope="none")))
        return answer

    def pushed_prompt(self):
        """A prompt whose blocks worker-0 has given to the store."""
        prompt = new_prompt(PROMPT_TOKENS)
        self.ask(prompt, "worker-0")
        self.cluster.wait_for_pushes("worker-0")
        return prompt

    def loads(self, result):
        return self.cluster.worker_metric("worker-1", "kv_load_blocks_total", result=result)

    def pushes(self, result):
        return self.cluster.worker_metric("worker-0", "kv_push_blocks_total", result=result)

    def reader_metric(self, name, **labels):
        return self.cluster.worker_metric("worker-1", name, **labels)

    def until_moved(self, counter, attempt):
        """Attempts until `counter` has moved, and the last answer. A busy machine may give a lookup or a load up
        before it comes to what is tested."""
        before, answers = counter(), []

        def moved():
            answers.append(attempt())
            return counter() > before
        eventually(moved, "the counter has moved")
        return answers[-1]

    def check_recovery(self):
        """The store is well again: worker-1 loads from it, though nothing else was restarted."""
        def loaded():
            return from_store(self.exact(self.pushed_prompt(), "worker-1")) > 0
        eventually(loaded, "nothing is loaded any more")


class WrongAnswersTest(StoreFaultTest):
    STORE = "faulty_kvstore"

    def tearDown(self):
        self.cluster.set_fault("none")
        self.check_recovery()

    def read_under(self, fault, counter):
        """worker-1 reads what worker-0 pushed, under `fault`, until `counter` has moved: the last answer."""
        def attempt():
            self.cluster.set_fault("none")
            prompt = self.pushed_prompt()
            self.cluster.set_fault(fault)
            return self.exact(prompt, "worker-1")
        return self.until_moved(counter, attempt)

    def corrupt_blocks(self):
        return self.cluster.worker_metric("worker-1", "kv_corrupt_blocks_total", hop="get")

    def reported_blocks(self):
        return self.cluster.store_metric("kv_corrupt_blocks_total", hop="reader")

    def test_r13_a_flipped_bit_is_a_counted_miss(self):
        before, reported = self.loads("corrupt"), self.reported_blocks()
        answer = self.read_under("corrupt", self.corrupt_blocks)
        self.assertEqual(from_store(answer), 0)
        self.assertGreater(self.loads("corrupt"), before)
        eventually(lambda: self.reported_blocks() > reported, "the store never heard of it")

    def test_r4_r13_a_payload_that_lacks_a_byte_is_a_counted_miss(self):
        answer = self.read_under("truncated", self.corrupt_blocks)
        self.assertEqual(from_store(answer), 0)

    def test_r8_a_block_of_another_space_is_refused(self):
        answer = self.read_under("foreign", lambda: self.loads("refused"))
        self.assertEqual(from_store(answer), 0)

    def test_r8_a_block_of_another_tenant_is_refused(self):
        answer = self.read_under("tenant", lambda: self.loads("refused"))
        self.assertEqual(from_store(answer), 0)

    def test_r8_another_blocks_record_is_a_counted_miss(self):
        answer = self.read_under("other", self.corrupt_blocks)
        self.assertEqual(from_store(answer), 0)

    def check_a_part_is_used(self, fault, result):
        def attempt():
            answer = self.read_under(fault, lambda: self.loads(result))
            return 0 < from_store(answer) < LOADABLE_TOKENS
        eventually(attempt, "a part of what was promised is used")

    def test_r4_r29_of_a_read_that_breaks_off_the_whole_blocks_are_used(self):
        self.check_a_part_is_used("cut", "failed")

    def test_r29_r31_of_a_lookup_that_promised_more_than_arrives_what_came_is_used(self):
        self.check_a_part_is_used("lying", "missing")

    def test_r26_reads_that_are_too_slow_are_given_up(self):
        answer = self.read_under("slow_reads 60000", lambda: self.loads("failed"))
        self.assertEqual(from_store(answer), 0)

    def test_r26_nobody_waits_for_a_store_that_is_slow_in_everything(self):
        prompt = self.pushed_prompt()
        missed = self.reader_metric("kv_deadline_misses_total", call="lookup")
        self.cluster.set_fault("slow 60000")
        self.assertEqual(from_store(self.exact(prompt, "worker-1")), 0)
        eventually(lambda: self.reader_metric("kv_deadline_misses_total", call="lookup") > missed,
                   "the late lookup was not counted")
        self.exact(new_prompt(PROMPT_TOKENS), "worker-0")

    def test_r27_a_store_that_refuses_every_call_is_a_miss_and_a_counted_failure(self):
        prompt = self.pushed_prompt()
        self.cluster.set_fault("refuse")
        self.assertEqual(from_store(self.exact(prompt, "worker-1")), 0)

        def attempt():
            self.exact(new_prompt(PROMPT_TOKENS), "worker-0")
            self.cluster.wait_for_pushes("worker-0")
        self.until_moved(lambda: self.pushes("failed"), attempt)

    def test_r25_a_store_of_a_foreign_protocol_is_absent_and_an_alarm(self):
        prompt = self.pushed_prompt()
        self.cluster.set_fault("foreign_protocol")
        before = self.reader_metric("kv_handshake_mismatches_total")

        def noticed():  # with one of the requests that follow, not before the first of them
            self.exact(new_prompt(PROMPT_TOKENS), "worker-1")
            return self.reader_metric("kv_handshake_mismatches_total") > before
        eventually(noticed, "the foreign protocol was noticed")
        self.assertEqual(from_store(self.exact(prompt, "worker-1")), 0)

    def test_pushes_into_a_full_store_are_dropped(self):
        self.cluster.set_fault("full")

        def attempt():
            self.exact(new_prompt(PROMPT_TOKENS), "worker-0")
            self.cluster.wait_for_pushes("worker-0")
        self.until_moved(lambda: self.pushes("no_room"), attempt)

    def test_two_workers_with_other_bytes_for_one_key_raise_the_alarm(self):
        """The store holds what another worker is said to have put; worker-0 comes second, with the right bytes."""
        self.cluster.set_fault("overtaken")

        def attempt():
            self.exact(new_prompt(PROMPT_TOKENS), "worker-0")
            self.cluster.wait_for_pushes("worker-0")
        self.until_moved(lambda: self.cluster.store_metric("kv_divergent_puts_total"), attempt)
        self.assertGreater(self.pushes("divergent"), 0)


class WrongBytesTest(StoreFaultTest):
    """Blocks that are valid in everything but their bytes. Every loaded block is computed again and compared."""
    STORE = "faulty_kvstore"
    WORKER_FLAGS = ("--kv-recheck-one-in", "1")

    def test_a_recheck_finds_wrong_bytes_and_nothing_of_their_producer_is_loaded_again(self):
        def mismatches():
            return self.reader_metric("kv_recheck_blocks_total", result="mismatch")

        def attempt():
            self.cluster.set_fault("none")
            prompt = self.pushed_prompt()
            self.cluster.set_fault("divergent")
            try:
                self.ask(prompt, "worker-1")
            except ApiError as error:  # found while it was read: rather no answer than a wrong one
                self.assertEqual(error.status, 500, error)
            self.cluster.set_fault("none")
            return prompt

        prompt = self.until_moved(mismatches, attempt)
        self.assertEqual(from_store(self.exact(prompt, "worker-1")), 0)
        found = mismatches()

        def refused_attempt():
            answer = self.exact(self.pushed_prompt(), "worker-1")
            self.assertEqual(from_store(answer), 0, "a block of the refused producer was used")
        self.until_moved(lambda: self.loads("refused"), refused_attempt)
        self.assertEqual(mismatches(), found)


class DeadStoreTest(StoreFaultTest):
    STORE = "pagoda-kvstore"

    def test_r27_r33_a_store_that_is_killed_costs_misses_until_it_is_back(self):
        self.check_recovery()
        prompt = self.pushed_prompt()
        self.cluster.store.end(signal.SIGKILL)
        self.assertEqual(from_store(self.exact(prompt, "worker-1")), 0)

        def attempt():
            self.exact(new_prompt(PROMPT_TOKENS), "worker-0")
            self.cluster.wait_for_pushes("worker-0")
        self.until_moved(lambda: self.pushes("failed"), attempt)
        self.cluster.store.start()
        self.check_recovery()

    def test_r26_r33_a_store_that_is_frozen_makes_nobody_wait_and_pushes_drop(self):
        self.check_recovery()
        prompt = self.pushed_prompt()
        lost = self.pushes("failed") + self.pushes("dropped")
        self.cluster.store.send(signal.SIGSTOP)
        try:
            self.assertEqual(from_store(self.exact(prompt, "worker-1")), 0)
            self.until_moved(lambda: self.reader_metric("kv_breaker_opened_total"),
                             lambda: self.exact(new_prompt(PROMPT_TOKENS), "worker-1"))
            self.assertNotEqual(self.reader_metric("kv_breaker_state"), 0)
            for _ in range(4):
                self.exact(new_prompt(PROMPT_TOKENS), "worker-0")  # decodes on, though no push is answered
            eventually(lambda: self.pushes("failed") + self.pushes("dropped") > lost, "no push was given up")
        finally:
            self.cluster.store.send(signal.SIGCONT)
        self.check_recovery()
        self.assertEqual(self.reader_metric("kv_breaker_state"), 0)

    def test_r28_a_restarted_store_is_known_for_another_instance(self):
        self.check_recovery()
        restarts = self.reader_metric("kv_store_restarts_total")
        prompt = self.pushed_prompt()
        self.cluster.store.end(signal.SIGKILL)
        self.cluster.store.start()
        self.check_recovery()

        def noticed():
            self.exact(new_prompt(PROMPT_TOKENS), "worker-1")
            return self.reader_metric("kv_store_restarts_total") > restarts
        eventually(noticed, "the new instance was noticed")
        self.assertEqual(from_store(self.exact(prompt, "worker-1")), 0, "the old instance's blocks are gone with it")

    def test_r28_r70_a_store_that_restarts_in_the_middle_of_traffic_changes_no_token(self):
        shared = new_prompt(128)
        prompts = [shared + new_prompt(1 + 13 * i % 60) for i in range(24)]
        done = threading.Event()

        def restart():
            while not done.is_set():
                self.cluster.store.end(signal.SIGKILL)
                done.wait(0.3)
                self.cluster.store.start()
                done.wait(0.3)

        with concurrent.futures.ThreadPoolExecutor(7) as pool:
            restarting = pool.submit(restart)
            try:
                answers = list(pool.map(lambda i: self.ask(prompts[i], f"worker-{i % 2}"), range(len(prompts))))
            finally:
                done.set()
            restarting.result()
        for prompt, answer in zip(prompts, answers):
            self.assertEqual(ids(answer), ids(self.ask(prompt, "worker-0", cache_scope="none")))
        self.check_recovery()


if __name__ == "__main__":
    MODEL = sys.argv.pop(2)
    BIN_DIR = sys.argv.pop(1)
    unittest.main(verbosity=2)
