#!/usr/bin/env python3
"""Workers that leave a running cluster: by SIGTERM, and by `pagoda drain`.

usage: drain_test.py BIN_DIR MODEL
"""
import os
import signal
import subprocess
import sys
import unittest

from cluster import ApiError, Cluster, eventually

LONG = "3600"  # seconds no test waits for
LONG_ANSWER = 900  # tokens: still running when the worker is told to leave


def cluster(delay="0", timeout=LONG):
    return Cluster(BIN_DIR, MODEL, flags=["--drain-delay", delay, "--drain-timeout", timeout])


def answers_by_worker(cluster, count=8):
    """Who answers `count` different prompts."""
    return {cluster.complete([i + 5, i + 6, i + 7], max_tokens=1)["worker"] for i in range(count)}


def ended_with(cluster, name):
    eventually(lambda: f'"msg":"a child ended","child":"{name}"' in cluster.log_text(), f"{name} ended")
    return cluster.log_text().split(f'"msg":"a child ended","child":"{name}","reason":"')[1].split('"')[0]


class DrainTest(unittest.TestCase):
    def readiness(self, cluster, http):
        with self.assertRaises(ApiError) as caught:
            cluster.request("GET", "/readyz", address=http)
        return caught.exception

    def test_r67_a_draining_worker_is_unready_first_and_gets_no_new_requests(self):
        with cluster(delay=LONG) as c:
            worker = c.workers()["worker-0"]
            os.kill(c.pids["worker-0"], signal.SIGTERM)
            eventually(lambda: c.workers()["worker-0"]["state"] == "draining", "the router knows it")
            self.assertEqual(self.readiness(c, worker["http"]).status, 503)
            self.assertIn("draining", self.readiness(c, worker["http"]).body)
            self.assertEqual(subprocess.run([f"{BIN_DIR}/pagoda", "health", worker["grpc"]],
                                            capture_output=True, timeout=120).returncode, 1)
            c.request("GET", "/healthz", address=worker["http"])  # alive all the same
            self.assertEqual(answers_by_worker(c), {"worker-1"})
            # It still waits. A second signal ends it at once.
            os.kill(c.pids["worker-0"], signal.SIGTERM)
            self.assertEqual(ended_with(c, "worker-0"), "was killed by signal 15")

    def start_stream(self, c):
        """The events after the first of a long answer of worker-0, which goes on while they are not read."""
        body = {"model": "default", "prompt": [5, 6, 7], "max_tokens": LONG_ANSWER, "temperature": 0,
                "ignore_eos": True}
        events = c.stream("/v1/completions", body, {"x-pagoda-worker": "worker-0"})
        next(events)
        return events

    def test_r68_a_running_request_finishes_before_a_draining_worker_ends_with_status_0(self):
        with cluster() as c:
            events = self.start_stream(c)
            os.kill(c.pids["worker-0"], signal.SIGTERM)
            choices = [e["choices"][0] for e in events if e.get("choices")]
            self.assertEqual(choices[-1]["finish_reason"], "length")
            self.assertEqual(ended_with(c, "worker-0"), "ended with status 0")
            self.assertEqual(answers_by_worker(c), {"worker-1"})

    def test_r68_what_does_not_finish_in_time_is_left_to_others_and_the_status_is_0(self):
        with cluster(timeout="0") as c:
            events = self.start_stream(c)
            os.kill(c.pids["worker-0"], signal.SIGTERM)
            self.assertEqual(ended_with(c, "worker-0"), "ended with status 0")
            self.assertIn("the rest is left to other workers", c.log_text())
            choices = [e["choices"][0] for e in events if e.get("choices")]
            self.assertEqual(choices[-1]["finish_reason"], "length")
            self.assertEqual(answers_by_worker(c), {"worker-1"})

    def drain(self, c, worker):
        return subprocess.run([f"{BIN_DIR}/pagoda", "drain", worker, "--router", c.ready["grpc"]],
                              capture_output=True, text=True, timeout=120)

    def check_a_drained_stream(self, **sampling):
        fields = {"prompt": [5, 6, 7], "max_tokens": LONG_ANSWER, "temperature": 0, "ignore_eos": True, **sampling}
        with cluster() as c:
            undisturbed = c.complete(worker="worker-1", cache_scope="none", **fields)
            events = c.stream("/v1/completions", {"model": "default", "return_token_ids": True, **fields},
                              {"x-pagoda-worker": "worker-0"})
            choices = [next(events)["choices"][0]]
            self.assertEqual(self.drain(c, "worker-0").returncode, 0)
            self.assertEqual(c.worker_metric("worker-0", "num_requests_running"), 1, "the stream had ended before")
            listed = subprocess.run([f"{BIN_DIR}/pagoda", "workers", "--http", f"http://{c.http}"],
                                    capture_output=True, text=True, timeout=120)
            states = {line.split()[0]: line.split()[1] for line in listed.stdout.splitlines()}
            self.assertEqual((states["worker-0"], states["worker-1"]), ("draining", "ready"), listed)
            choices += [e["choices"][0] for e in events if e.get("choices")]
            self.assertEqual([i for choice in choices for i in choice.get("token_ids") or ()],
                             undisturbed["choices"][0]["token_ids"])
            self.assertEqual("".join(choice["text"] for choice in choices), undisturbed["choices"][0]["text"])

    def test_r68_a_greedy_stream_keeps_its_tokens_when_its_worker_is_drained(self):
        self.check_a_drained_stream()

    def test_r68_a_sampled_stream_keeps_its_tokens_when_its_worker_is_drained(self):
        self.check_a_drained_stream(temperature=1.0, top_p=0.9, seed=3)

    def test_a_drained_worker_gets_no_new_requests_and_finishes_what_it_has(self):
        with cluster() as c:
            events = self.start_stream(c)
            run = self.drain(c, "worker-0")
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertEqual(answers_by_worker(c), {"worker-1"})
            self.assertEqual(c.workers()["worker-0"]["state"], "draining")
            choices = [e["choices"][0] for e in events if e.get("choices")]
            self.assertEqual(choices[-1]["finish_reason"], "length")
            run = self.drain(c, "worker-9")
            self.assertEqual(run.returncode, 1)
            self.assertIn('"worker-9" is not known', run.stderr)


if __name__ == "__main__":
    MODEL = sys.argv.pop(2)
    BIN_DIR = sys.argv.pop(1)
    unittest.main(verbosity=2)
