#!/usr/bin/env python3
"""Runs deploy/demo.py against a stand-in for `pagoda up` that answers like a cluster.

usage: demo_test.py ROOT
"""
import contextlib
import io
import json
import os
import pathlib
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

# FAKE_FAULT says what is wrong with the cluster; what it was asked is written to FAKE_LOG.
FAKE_PAGODA = r'''#!/usr/bin/env python3
import http.server, json, os, signal, sys, threading
fault = os.environ.get("FAKE_FAULT", "")
log = open(os.environ["FAKE_LOG"], "a", buffering=1)
log.write(json.dumps({"argv": sys.argv[1:], "pid": os.getpid()}) + "\n")
if fault == "start":
    print(json.dumps({"level": "error", "msg": "the cluster is not ready", "reason": "no model"}), file=sys.stderr)
    sys.exit(1)
pending = [2]  # blocks still to be pushed; each look at the metric sees one less

class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def reply(self, body, worker=None, status=200):
        self.send_response(status)
        if worker:
            self.send_header("x-pagoda-worker", worker)
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self):
        if self.path == "/metrics":
            self.reply("# HELP x y\npagoda:kv_push_pending_blocks{model=\"m\"} %d\n"
                       "pagoda:kvstore_blocks{tier=\"ram\"} 43\n" % pending[0])
            pending[0] = max(0, pending[0] - 1)
        else:
            self.reply(json.dumps({"workers": [{"name": f"worker-{i}", "http": address} for i in range(2)]}))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        worker = self.headers["x-pagoda-worker"] or "worker-0"
        log.write(json.dumps({"worker": worker, "pending": pending[0], "body": body}) + "\n")
        if fault == "refuse":
            return self.reply('{"error":{"message":"no"}}', status=503)
        cold = "cache_scope" in body or len(questions) == 0 or fault == "not shared"
        questions.append(body)
        local = 0 if cold or worker == "worker-1" else 1376
        ram = 0 if cold or local else 1376
        usage = {"prompt_tokens": 1400, "completion_tokens": 2,
                 "pagoda": {"computed": 1400 - local - ram, "local": local, "ram": ram, "disk": 0}}
        last = 8 if fault == "tokens" and "cache_scope" in body else 7
        events = [{"choices": [{"delta": {"role": "assistant", "content": ""}}]},
                  {"choices": [{"delta": {"content": "Good "}, "token_ids": [5]}]},
                  {"choices": [{"delta": {"content": "day"}, "token_ids": [last], "finish_reason": "length"}]},
                  {"choices": [], "usage": usage}]
        if fault == "error":
            events[2] = {"error": {"message": "all workers are gone"}}
        self.reply("".join(f"data: {json.dumps(e)}\n\n" for e in events) + "data: [DONE]\n\n", worker)

questions = []
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
address = "127.0.0.1:%d" % server.server_port
def stop(*_):
    log.write('{"stopped":true}\n')
    os._exit(0)
signal.signal(signal.SIGTERM, stop)
print(json.dumps({"level": "info", "msg": "ready", "child": "kvstore", "http": address}), file=sys.stderr)
print(json.dumps({"ready": True, "http": "http://" + address, "grpc": "127.0.0.1:1",
                  "kvstore": "127.0.0.1:2", "pids": {}}), flush=True)
server.serve_forever()
'''


class DemoTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        programs = self.folder / "bin"
        programs.mkdir()
        (programs / "pagoda").write_text(FAKE_PAGODA)
        (programs / "pagoda").chmod(0o755)
        self.log = self.folder / "log"
        self.command = [sys.executable, ROOT / "deploy/demo.py", "--programs", programs, "--model", "m.gguf"]

    def start(self, *arguments, fault=""):
        process = subprocess.Popen([*self.command, *arguments], text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE,
                                   env=os.environ | {"FAKE_LOG": str(self.log), "FAKE_FAULT": fault})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def demo(self, *arguments, fault=""):
        process = self.start("--once", *arguments, fault=fault)
        out, error = process.communicate(timeout=60)
        return process.returncode, out, error

    def events(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def test_the_three_questions_and_the_check(self):
        status, out, error = self.demo()
        self.assertEqual(status, 0, error)
        asked = [e for e in self.events() if "body" in e]
        self.assertEqual([e["worker"] for e in asked], ["worker-0", "worker-1", "worker-0", "worker-0"])
        self.assertEqual([e["body"].get("cache_scope") for e in asked], [None, None, None, "none"])
        self.assertEqual(asked[1]["body"]["messages"], asked[3]["body"]["messages"])
        self.assertEqual(len({json.dumps(e["body"]["messages"]) for e in asked}), 3)
        for event in asked:
            self.assertEqual(event["body"]["temperature"], 0)
            self.assertEqual(event["body"]["max_tokens"], 48)
        self.assertEqual(asked[1]["pending"], 0, "question 2 waits for the pushes of question 1")
        self.assertIn("[worker-1: prompt of 1400 tokens = 24 computed + 0 local + 1376 RAM + 0 disk", out)
        self.assertIn("Sharing saved question 2 the work of 1376 of 1400 prompt tokens", out)
        self.assertEqual(self.events()[-1], {"stopped": True})

    def test_flags_reach_the_cluster_and_once_takes_free_ports(self):
        self.demo("--", "--kv-cache-bytes", "1GiB", "--http-address=127.0.0.1:9")
        argv = self.events()[0]["argv"]
        self.assertEqual(argv, ["up", "--model", "m.gguf", "--workers", "2", "--grpc-address", "127.0.0.1:0",
                                "--kv-cache-bytes", "1GiB", "--http-address=127.0.0.1:9"])

    def test_whatever_does_not_hold_is_named_and_the_status_is_1(self):
        for fault, reason in [("not shared", "worker-1 loads the shared prompt"), ("tokens", "give the same tokens"),
                              ("refuse", "HTTP 503"), ("error", "all workers are gone"), ("start", "no model")]:
            status, _, error = self.demo(fault=fault)
            self.assertEqual(status, 1, fault)
            self.assertIn(reason, error)
            self.assertEqual(self.events()[-1].get("stopped", False), fault != "start", fault)

    def test_who_waits_is_told_for_what(self):
        here, there = socket.socketpair()
        said = []

        class Screen(io.StringIO):
            def write(self, text):  # the awaited comes once something was said
                said.append(text)
                there.send(b"x")
                return len(text)

        with here, there, contextlib.redirect_stdout(Screen()):
            runpy.run_path(str(ROOT / "deploy/demo.py"))["wait_readable"](here, "computing", every_s=0.01)
        self.assertIn("computing, 0 s", "".join(said))

    def test_it_stays_up_until_ctrl_c_and_says_what_to_try(self):
        process = self.start()
        lines = []
        while not lines or "Ctrl-C stops everything" not in lines[-1]:
            lines.append(process.stdout.readline())
            self.assertTrue(lines[-1], "it ended early")
        text = "".join(lines)
        self.assertIn("curl http://127.0.0.1:", text)
        self.assertIn("pagoda chat --http http://127.0.0.1:", text)
        self.assertIn("pagoda kv stats --kvstore 127.0.0.1:2\n", text)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.events()[-1], {"stopped": True})

    def test_a_cluster_that_dies_later_is_reported(self):
        process = self.start()
        while "Ctrl-C stops everything" not in process.stdout.readline():
            pass
        os.kill(self.events()[0]["pid"], signal.SIGKILL)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("the cluster ended", error)


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop(1)).absolute()
    unittest.main()
