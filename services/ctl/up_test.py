"""Runs `pagoda up` with stand-in services that keep the contract of service programs.

usage: up_test.py PAGODA_PROGRAM
"""
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

# One script under the three names. FAKE_<NAME> says what is wrong with it; every start is written to
# the file FAKE_LOG as a JSON line.
FAKE_SERVICE = r'''#!/usr/bin/env python3
import json, os, signal, sys
program = os.path.basename(sys.argv[0])
flags = {"pagoda-kvstore": ["ram-bytes value"],
         "pagoda-router": ["model value", "kvstore value", "allow-placement-override switch"],
         "pagoda-worker": ["model value", "name value", "router value", "kvstore value",
                           "kv-cache-bytes value", "threads value", "kv-offload value"]}[program]
if sys.argv[1:] == ["--list-flags"]:
    print("\n".join(flags + ["grpc-address value", "http-address value"]))
    sys.exit(0)
name = dict(zip(sys.argv[1:], sys.argv[2:])).get("--name", program)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
again = '{"name": "%s"' % name in open(os.environ["FAKE_LOG"]).read()
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write(json.dumps({"name": name, "argv": sys.argv[1:], "pid": os.getpid()}) + "\n")
fault = os.environ.get("FAKE_" + name.replace("-", "_").upper(), "")
if again and fault.startswith("later-"):
    sys.exit(int(fault.removeprefix("later-")))
if fault == "fail":
    print("no such model", file=sys.stderr)
    sys.exit(1)
if fault == "refuse":
    print("--kv-cache-bytes: too few", file=sys.stderr)
    sys.exit(2)
if fault == "hang":
    signal.sigwait([signal.SIGTERM])
    sys.exit(0)
port = {"pagoda-kvstore": 1, "pagoda-router": 2}.get(program, 3)
print(json.dumps({"ready": True, "grpc": f"127.0.0.1:{port}", "http": f"127.0.0.1:{port + 10}",
                  "pid": os.getpid()}), flush=True)
signal.sigwait([signal.SIGTERM])
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write(json.dumps({"name": name, "stopped": True}) + "\n")
'''


class UpTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        # A copy, because `up` looks for the services beside its own file.
        self.pagoda = self.folder / "pagoda"
        shutil.copy(PAGODA, self.pagoda)
        for name in ("pagoda-kvstore", "pagoda-router", "pagoda-worker"):
            (self.folder / name).write_text(FAKE_SERVICE)
            (self.folder / name).chmod(0o755)
        self.model = self.folder / "model.gguf"
        self.model.write_text("")
        self.log = self.folder / "log"
        self.log.write_text("")

    def start(self, *flags, **faults):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PAGODA_")}
        environment.update(FAKE_LOG=str(self.log), **faults)
        process = subprocess.Popen([self.pagoda, "up", *flags], env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()

    def up(self, *flags, **faults):
        """Starts a cluster of two workers and returns (process, ready line)."""
        process = self.start("--model", str(self.model), "--workers", "2", *flags, **faults)
        line = process.stdout.readline()
        self.assertTrue(line, "not ready")
        return process, json.loads(line)

    def read_until(self, stream, text):
        for line in stream:
            if text in line:
                return line
        self.fail(f"the output ended before {text}")

    def events(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def arguments(self, name):
        return next(e["argv"] for e in self.events() if e["name"] == name)

    def assert_gone(self, pids):
        """All of `pids` end; a pidfd becomes readable then, also for processes that are not ours."""
        for pid in pids:
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            try:
                gone = select.select([descriptor], [], [], 30)[0]
                if not gone:
                    os.kill(pid, signal.SIGKILL)  # leave nothing behind
                self.assertTrue(gone, f"{pid} still ran")
            finally:
                os.close(descriptor)

    def test_the_ready_line_names_addresses_and_processes(self):
        process, ready = self.up()
        self.assertEqual(list(ready), ["ready", "http", "grpc", "kvstore", "pids"])
        self.assertIs(ready["ready"], True)
        self.assertEqual(ready["http"], "http://127.0.0.1:12")
        self.assertEqual(ready["grpc"], "127.0.0.1:2")
        self.assertEqual(ready["kvstore"], "127.0.0.1:1")
        started = {e["name"].removeprefix("pagoda-"): e["pid"] for e in self.events()}
        self.assertEqual(ready["pids"], started)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(out, "", "stdout carries only the ready line")

    def test_store_then_router_then_workers_and_each_knows_whom_to_dial(self):
        self.up()
        names = [e["name"] for e in self.events()]
        self.assertEqual(names[:2], ["pagoda-kvstore", "pagoda-router"])
        self.assertEqual(sorted(names[2:]), ["worker-0", "worker-1"])
        self.assertEqual(self.arguments("pagoda-router")[:2], ["--kvstore", "127.0.0.1:1"])
        worker = self.arguments("worker-1")
        flags = dict(zip(worker[::2], worker[1::2]))
        self.assertEqual(flags["--kvstore"], "127.0.0.1:1")
        self.assertEqual(flags["--router"], "127.0.0.1:2")
        self.assertEqual(flags["--grpc-address"], "127.0.0.1:0")
        self.assertEqual(flags["--http-address"], "127.0.0.1:0")

    def test_flags_and_defaults_reach_those_who_have_them(self):
        self.up("--grpc-address", "127.0.0.1:7", "--kv-cache-bytes", "1GiB")
        router = self.arguments("pagoda-router")
        self.assertEqual(router[router.index("--grpc-address") + 1], "127.0.0.1:7")
        self.assertIn("--allow-placement-override", router)
        self.assertNotIn("--kv-cache-bytes", router)
        worker = self.arguments("worker-0")
        flags = dict(zip(worker[::2], worker[1::2]))
        self.assertEqual(flags["--kv-cache-bytes"], "1GiB")
        self.assertEqual(flags["--kv-offload"], "write_through")
        self.assertGreaterEqual(int(flags["--threads"]), 1)
        self.assertEqual(flags["--model"], str(self.model))
        store = self.arguments("pagoda-kvstore")
        self.assertEqual(store[store.index("--ram-bytes") + 1], "1GiB")
        self.assertEqual(store.count("--grpc-address"), 1)

    def test_the_environment_replaces_a_default(self):
        self.up(PAGODA_RAM_BYTES="2GiB")
        self.assertNotIn("--ram-bytes", self.arguments("pagoda-kvstore"))

    def test_wrong_usage_and_a_missing_file_start_nothing(self):
        model = ["--model", str(self.model)]
        for status, flags, reason in [
                (2, model + ["--kv-cache-byte", "1"],
                 "unknown flag --kv-cache-byte (did you mean --kv-cache-bytes?)"),
                (2, model + ["--workers", "0"], '--workers: "0" is not a number from 1 to 64'),
                (2, model + ["--workers", "two"], '"two" is not a number'),
                (2, model + ["--restart=maybe"], '--restart: "maybe" is not true or false'),
                (2, model + ["--kvstore", "127.0.0.1:1"], "--kvstore is set by"),
                (2, ["--workers", "1"], "--model FILE is required"),
                (1, ["--model", "/nowhere.gguf"], '/nowhere.gguf')]:
            process = self.start(*flags)
            out, error = process.communicate(timeout=30)
            self.assertEqual(process.returncode, status, flags)
            self.assertIn(reason, error)
            self.assertEqual(out, "")
        self.assertEqual(self.events(), [])

    def test_a_child_that_does_not_start_is_named_and_all_end(self):
        process = self.start("--model", str(self.model), "--workers", "2", FAKE_WORKER_1="fail")
        out, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(out, "")
        self.assertIn("worker-1 ended with status 1 before it was ready", error)
        self.assertIn("no such model", error, "the child's own words pass through")
        self.assert_gone([e["pid"] for e in self.events() if "pid" in e])

    def test_a_flag_that_a_child_refuses_is_wrong_usage(self):
        process = self.start("--model", str(self.model), FAKE_WORKER_0="refuse")
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 2)
        self.assertIn("worker-0 ended with status 2 before it was ready", error)
        self.assertIn("--kv-cache-bytes: too few", error)

    def test_a_missing_program_is_named(self):
        (self.folder / "pagoda-worker").unlink()
        process = self.start("--model", str(self.model))
        _, error = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1)
        self.assertIn("pagoda-worker: No such file", error)

    def test_starting_is_bounded_in_time(self):
        process = self.start("--model", str(self.model), "--start-timeout", "1", FAKE_PAGODA_ROUTER="hang")
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("router was not ready in time", error)

    def test_a_signal_stops_router_then_workers_then_store_with_status_0(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            self.log.write_text("")
            process, _ = self.up()
            process.send_signal(number)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0)
            stopped = [e["name"] for e in self.events() if "stopped" in e]
            self.assertEqual([stopped[0], stopped[-1], len(stopped)],
                             ["pagoda-router", "pagoda-kvstore", 4])

    def test_without_restart_the_end_of_the_store_or_of_one_worker_is_survived(self):
        process, ready = self.up("--no-restart")
        for name in ("kvstore", "worker-0"):
            os.kill(ready["pids"][name], signal.SIGKILL)
            self.assertIn(f'"msg":"a child ended","child":"{name}","reason":"was killed by signal 9"',
                          self.read_until(process.stderr, "a child ended"))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)

    def test_without_restart_and_a_router_or_any_worker_the_cluster_ends_with_status_1(self):
        for victims, reason in [(["router"], "the router ended"), (["worker-0", "worker-1"], "no worker is left")]:
            process, ready = self.up("--no-restart")
            for name in victims:
                os.kill(ready["pids"][name], signal.SIGKILL)
            _, error = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 1)
            self.assertIn(reason, error)
            self.assert_gone(ready["pids"].values())

    def starts(self, name):
        return [e["argv"] for e in self.events() if e["name"] == name and "argv" in e]

    @staticmethod
    def flags(argv):
        words = [word for word in argv if word != "--allow-placement-override"]
        return dict(zip(words[::2], words[1::2]))

    def kill_and_wait_until_ready_again(self, process, name, pid):
        os.kill(pid, signal.SIGKILL)
        self.assertIn('"reason":"was killed by signal 9","wait_seconds":0.5',
                      self.read_until(process.stderr, f'restarted","child":"{name}"'))
        return json.loads(self.read_until(process.stderr, f'"msg":"ready","child":"{name}"'))["pid"]

    def test_each_child_that_dies_is_restarted_with_its_flags_at_its_addresses(self):
        process, ready = self.up("--kv-cache-bytes", "1GiB")
        for name, port in (("kvstore", 1), ("router", 2), ("worker-1", 3)):
            pid = self.kill_and_wait_until_ready_again(process, name, ready["pids"][name])
            self.assertNotEqual(pid, ready["pids"][name])
            first, second = map(self.flags, self.starts(name if "-" in name else "pagoda-" + name))
            first.update({"--grpc-address": f"127.0.0.1:{port}", "--http-address": f"127.0.0.1:{port + 10}"})
            self.assertEqual(second, first)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)

    def test_a_child_that_cannot_come_back_waits_longer_each_time_and_stop_does_not_wait_for_it(self):
        process, ready = self.up(FAKE_WORKER_0="later-1", FAKE_WORKER_1="later-1")
        for name in ("worker-0", "worker-1"):  # no worker runs, but all are to come back
            os.kill(ready["pids"][name], signal.SIGKILL)
        for wait in (0.5, 1, 2):
            line = self.read_until(process.stderr, '"child":"worker-0","reason"')
            self.assertEqual(json.loads(line)["wait_seconds"], wait)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertEqual([e["name"] for e in self.events() if "stopped" in e],
                         ["pagoda-router", "pagoda-kvstore"])

    def test_wrong_usage_of_a_restarted_program_is_final(self):
        process, ready = self.up(FAKE_PAGODA_ROUTER="later-2")
        os.kill(ready["pids"]["router"], signal.SIGKILL)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("the router ended", error)

    def test_killing_up_kills_restarted_children_too(self):
        process, ready = self.up()
        pid = self.kill_and_wait_until_ready_again(process, "worker-0", ready["pids"]["worker-0"])
        process.kill()
        process.wait(timeout=30)
        self.assert_gone([pid])

    def test_killing_up_kills_the_children(self):
        process, ready = self.up()
        process.kill()
        process.wait(timeout=30)
        self.assert_gone(ready["pids"].values())

    def test_ctrl_c_of_a_terminal_reaches_up_only(self):
        """The terminal signals our whole process group; the children must hear it from `up`, once."""
        process, ready = self.up()
        for pid in ready["pids"].values():
            self.assertNotEqual(os.getpgid(pid), os.getpgid(process.pid))


if __name__ == "__main__":
    PAGODA = sys.argv.pop(1)
    unittest.main()
