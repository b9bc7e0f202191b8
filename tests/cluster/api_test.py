#!/usr/bin/env python3
"""The HTTP front of a running cluster: what clients see, and what bad input gets.

usage: api_test.py BIN_DIR MODEL
"""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from cluster import ApiError, Cluster, eventually


class ApiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(BIN_DIR, MODEL, workers=1))

    def refused(self, status, path, body, names, headers=None):
        with self.assertRaises(ApiError) as caught:
            self.cluster.request("POST", path, body, headers)
        self.assertEqual(caught.exception.status, status, caught.exception)
        self.assertIn(names, caught.exception.message)
        # The server goes on.
        self.assertEqual(self.cluster.complete([5, 6, 7], max_tokens=1)["usage"]["completion_tokens"], 1)

    def test_models_lists_the_file_and_default_names_it(self):
        models = self.cluster.request("GET", "/v1/models")[1]
        self.assertEqual(models["object"], "list")
        name = os.path.splitext(os.path.basename(MODEL))[0]
        self.assertEqual([m["id"] for m in models["data"]], [name])

    def test_health_and_readiness(self):
        self.cluster.request("GET", "/healthz")
        self.cluster.request("GET", "/readyz")

    def test_a_stream_carries_the_text_of_the_whole_answer(self):
        body = {"model": "default", "messages": [{"role": "user", "content": "Grüß dich, 世界!"}],
                "temperature": 0, "max_tokens": 40, "ignore_eos": True}
        whole = self.cluster.request("POST", "/v1/chat/completions", body)[1]
        events = list(self.cluster.stream("/v1/chat/completions",
                                          {**body, "stream_options": {"include_usage": True}}))
        self.assertEqual(events[-1]["choices"], [])
        self.assertEqual(events[-1]["usage"]["completion_tokens"], 40)
        deltas = [e["choices"][0] for e in events[:-1]]
        self.assertEqual(deltas[0]["delta"].get("role"), "assistant")
        self.assertEqual("".join(d["delta"].get("content") or "" for d in deltas),
                         whole["choices"][0]["message"]["content"])
        self.assertEqual([d["finish_reason"] for d in deltas if d["finish_reason"]], ["length"])
        self.assertEqual(len({e["id"] for e in events}), 1)

    def test_max_tokens_defaults_to_16_for_completions(self):
        self.assertEqual(self.cluster.complete([5, 6], ignore_eos=True)["usage"]["completion_tokens"], 16)

    def test_bad_fields_are_4xx_and_name_the_field(self):
        ok = {"model": "default", "prompt": [5, 6]}
        chat = {"model": "default", "messages": [{"role": "user", "content": "hi"}]}
        for status, path, body, names in [
                (404, "/v1/completions", {**ok, "model": "gpt-9"}, "gpt-9"),
                (400, "/v1/completions", {**ok, "prompt": ""}, "prompt"),
                (400, "/v1/completions", {**ok, "prompt": []}, "prompt"),
                (400, "/v1/completions", {**ok, "prompt": [5, 10**9]}, "1000000000"),
                (400, "/v1/completions", {**ok, "prompt": [-1]}, "prompt"),
                (400, "/v1/completions", {**ok, "prompt": 7}, "prompt"),
                (400, "/v1/completions", {**ok, "max_tokens": 10**6}, "max_tokens"),
                (400, "/v1/completions", {**ok, "max_tokens": 0}, "max_tokens"),
                (400, "/v1/completions", {**ok, "max_tokens": "many"}, "max_tokens"),
                (400, "/v1/completions", {**ok, "temperature": 3}, "temperature"),
                (400, "/v1/completions", {**ok, "top_p": 0}, "top_p"),
                (400, "/v1/completions", {**ok, "top_k": -2}, "top_k"),
                (400, "/v1/completions", {**ok, "cache_scope": "all"}, "cache_scope"),
                (400, "/v1/completions", {**ok, "logprobs": 5}, "logprobs"),
                (400, "/v1/chat/completions", {**chat, "messages": []}, "messages"),
                (400, "/v1/chat/completions", {**chat, "messages": "hi"}, "messages"),
                (400, "/v1/chat/completions", {**chat, "n": 17}, "n"),
                (400, "/v1/chat/completions", {**chat, "stream_options": {}}, "stream_options"),
        ]:
            with self.subTest(body=body):
                self.refused(status, path, body, names)

    def test_a_client_may_name_256_stop_ids(self):
        stop = list(range(20, 276))
        self.cluster.complete([5, 6], max_tokens=3, stop_token_ids=stop)
        self.refused(400, "/v1/completions", {"model": "default", "prompt": [5], "stop_token_ids": [*stop, 276]},
                     "stop_token_ids")

    def test_bad_bytes_are_refused(self):
        self.refused(400, "/v1/completions", b"{", "JSON")
        self.refused(400, "/v1/completions", b'{"model":"default","prompt":"\xff\xfe"}', "UTF-8")
        self.refused(413, "/v1/completions", b" " * (17 << 20), "16")
        self.refused(400, "/v1/completions", {"model": "default", "prompt": [5]}, "worker-9",
                     {"x-pagoda-worker": "worker-9"})

    def test_headers_over_32_kib_are_431(self):
        host, port = self.cluster.http.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40000 + b"\r\n\r\n")
            self.assertIn(b" 431 ", connection.recv(4096).split(b"\r\n")[0])

    def test_metrics_count_tokens_on_the_worker(self):
        before = self.cluster.worker_metric("worker-0", "generation_tokens_total")
        self.cluster.complete([9, 8, 7], max_tokens=5, ignore_eos=True)
        self.assertEqual(self.cluster.worker_metric("worker-0", "generation_tokens_total"), before + 5)


def is_dead(pid):
    """Also of an orphan whose exit status nobody takes, as the first process of a container may leave it."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


class UpTest(unittest.TestCase):
    def test_every_process_ends_with_sigterm_and_status_0(self):
        with Cluster(BIN_DIR, MODEL, workers=1) as cluster:
            pids = list(cluster.pids.values())
            self.assertEqual(sorted(cluster.pids), ["kvstore", "router", "worker-0"])
        self.assertEqual(cluster.exit_status, 0)
        for pid in pids:
            self.assertRaises(ProcessLookupError, os.kill, pid, 0)

    def test_children_die_with_up_also_on_sigkill(self):
        with Cluster(BIN_DIR, MODEL, workers=1) as cluster:
            cluster.process.send_signal(signal.SIGKILL)
            cluster.process.wait()
            for pid in cluster.pids.values():
                eventually(lambda: is_dead(pid), f"{pid} is dead")

    def up_fails(self, model):
        run = subprocess.run([f"{BIN_DIR}/pagoda", "up", "--model", model, "--workers", "1"],
                             capture_output=True, text=True, timeout=120)
        self.assertIn(model, run.stderr)
        self.assertEqual(run.stdout, "")
        return run.returncode

    def test_a_model_that_cannot_be_read_is_named(self):
        self.assertEqual(self.up_fails("/nonexistent.gguf"), 1)
        with tempfile.NamedTemporaryFile(suffix=".gguf") as truncated, open(MODEL, "rb") as whole:
            truncated.write(whole.read(5000))
            truncated.flush()
            self.assertEqual(self.up_fails(truncated.name), 1)

    def test_an_unknown_flag_is_status_2(self):
        run = subprocess.run([f"{BIN_DIR}/pagoda", "up", "--model", MODEL, "--wrokers", "1"],
                             capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, 2)
        self.assertIn("wrokers", run.stderr)


if __name__ == "__main__":
    MODEL = sys.argv.pop(2)
    BIN_DIR = sys.argv.pop(1)
    unittest.main(verbosity=2)
