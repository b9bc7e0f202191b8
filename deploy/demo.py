#!/usr/bin/env python3
"""Runs a local cluster and shows the main job: one long prompt, computed once, used by everyone.

usage: demo.py --programs FOLDER --model FILE [--once] [-- FLAG...]

Exit status: 0 everything held, 1 something did not, 130 stopped by Ctrl-C before the end.
Python's standard library only.
"""
import argparse
import contextlib
import ctypes
import http.client
import json
import pathlib
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time

SYSTEM_PROMPT = pathlib.Path(__file__).with_name("system_prompt.txt")
# Questions that the small model answers well.
QUESTIONS = [
    "What is the name of the wireless network?",
    "When is story hour?",
    "What is the telephone number of the desk?",
]
MAX_TOKENS = 48
# The system prompt has over 1,300 tokens of SmolLM2; other tokenizers need somewhat fewer.
SHARED_TOKENS_MIN = 960
PUSH_TIMEOUT_S = 60
PORTS = {"--http-address": 8080, "--grpc-address": 7070}


class Failed(Exception):
    """Something did not hold; the message says what."""


def fetch(address, path, timeout_s=30):
    connection = http.client.HTTPConnection(address, timeout=timeout_s)
    with contextlib.closing(connection):
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read().decode()
    if response.status != 200:
        raise Failed(f"GET {path}: HTTP {response.status}: {body[:300]}")
    return body


def metric(address, name, **labels):
    """The sum of a metric's series that carry these labels."""
    total = 0.0
    for line in fetch(address, "/metrics").splitlines():
        series = re.fullmatch(r"([^\s{]+)(?:\{(.*)\})? (\S+)(?: \d+)?", line)
        if series and series[1] == name:
            if all(f'{key}="{value}"' in (series[2] or "") for key, value in labels.items()):
                total += float(series[3])
    return total


def is_free(port):
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def wait_readable(stream, what, every_s=2):
    """Until there is something to read, saying now and then what is waited for."""
    began = time.monotonic()
    while not select.select([stream], [], [], every_s)[0]:
        print(f"      {what}, {time.monotonic() - began:.0f} s", flush=True)


def die_with_parent():
    """Runs in the child: the kernel sends it SIGTERM when this script is killed."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Cluster:
    """`pagoda up` in a process group of its own: Ctrl-C reaches us, and we tell it."""

    def __init__(self, programs, model, fixed_ports, flags):
        self.log = programs.parent / "quickstart.log"
        command = [programs / "pagoda", "up", "--model", model, "--workers", "2"]
        for flag, port in PORTS.items():
            if not any(word.split("=")[0] == flag for word in flags):
                command += [flag, f"127.0.0.1:{port if fixed_ports and is_free(port) else 0}"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command + flags, stdout=subprocess.PIPE, stderr=log,
                                            process_group=0, preexec_fn=die_with_parent)

    def wait_ready(self):
        began = time.monotonic()
        wait_readable(self.process.stdout, "loading the model")
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"the cluster did not start: {self.last_error()}")
        ready = json.loads(line)
        self.http = ready["http"].removeprefix("http://")
        self.kvstore_grpc = ready["kvstore"]
        self.kvstore = self.address_in_log("kvstore")
        workers = json.loads(fetch(self.http, "/pagoda/v1/workers"))["workers"]
        self.workers = {worker["name"]: worker["http"] for worker in workers}
        print(f"      ready after {time.monotonic() - began:.1f} s; logs are in {self.log}")

    def log_lines(self):
        for line in self.log.read_text(errors="replace").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                yield {"level": "error", "msg": line}

    def address_in_log(self, child):
        return next(line["http"] for line in self.log_lines()
                    if line.get("msg") == "ready" and line.get("child") == child)

    def last_error(self):
        errors = [line for line in self.log_lines() if line.get("level") == "error"]
        last = errors[-1] if errors else {"msg": "no reason given"}
        return f"{last['msg']} {last.get('reason', '')} (see {self.log})"

    def wait_pushed(self, worker):
        """Until the worker has no push waiting and the store holds blocks."""
        deadline = time.monotonic() + PUSH_TIMEOUT_S
        while (metric(self.workers[worker], "pagoda:kv_push_pending_blocks") > 0
               or metric(self.kvstore, "pagoda:kvstore_blocks", tier="ram") == 0):
            if time.monotonic() > deadline:
                raise Failed(f"{worker} did not push its blocks within {PUSH_TIMEOUT_S} s")
            time.sleep(0.02)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait()


class Answer:
    """One streamed answer, shown while it comes."""

    def __init__(self, address, question, worker=None, cache_scope=None):
        self.text, self.token_ids, self.usage, self.ttft_s = "", [], None, None
        body = {"model": "default", "temperature": 0, "max_tokens": MAX_TOKENS, "stream": True,
                "stream_options": {"include_usage": True}, "return_token_ids": True,
                "messages": [{"role": "system", "content": SYSTEM_PROMPT.read_text()},
                             {"role": "user", "content": question}]}
        if cache_scope:
            body["cache_scope"] = cache_scope
        headers = {"Content-Type": "application/json"}
        if worker:
            headers["x-pagoda-worker"] = worker
        self.sent = time.monotonic()
        connection = http.client.HTTPConnection(address, timeout=600)
        with contextlib.closing(connection):
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            wait_readable(connection.sock, "computing the prompt")  # the headers come with the first token
            response = connection.getresponse()
            if response.status != 200:
                raise Failed(f"HTTP {response.status}: {response.read().decode()[:300]}")
            self.worker = response.getheader("x-pagoda-worker")
            self.read(response)
        print(f"\n      {self.status_line()}")

    def read(self, response):
        print("      ", end="")
        for line in response:
            data = line.decode().strip().removeprefix("data:").strip()
            if data == "[DONE]":
                break
            if not data.startswith("{"):
                continue
            event = json.loads(data)
            if "error" in event:
                raise Failed(event["error"]["message"])
            self.usage = event.get("usage") or self.usage
            for choice in event.get("choices", []):
                self.take(choice)
        if not self.usage:
            raise Failed("the answer came without its usage")
        self.tiers = self.usage["pagoda"]

    def take(self, choice):
        self.token_ids += choice.get("token_ids") or []
        text = choice.get("delta", {}).get("content")
        if text:
            self.last_s = time.monotonic() - self.sent
            self.ttft_s = self.ttft_s or self.last_s
            self.text += text
            print(text.replace("\n", "\n      "), end="", flush=True)

    def loaded(self):
        return self.tiers["ram"] + self.tiers["disk"]

    def status_line(self):
        tokens = self.usage["completion_tokens"]
        line = (f"[{self.worker}: prompt of {self.usage['prompt_tokens']} tokens = "
                f"{self.tiers['computed']} computed + {self.tiers['local']} local + "
                f"{self.tiers['ram']} RAM + {self.tiers['disk']} disk")
        if self.ttft_s is not None:
            line += f"; TTFT {self.ttft_s:.2f} s"
            if tokens > 1 and self.last_s > self.ttft_s:
                line += f"; {(tokens - 1) / (self.last_s - self.ttft_s):.1f} tokens/s"
        return line + "]"


def expect(holds, what):
    if not holds:
        raise Failed(f"expected that {what}")


def demonstrate(cluster):
    def ask(number, why, **options):
        print(f"\n      Question {number} ({why}): {QUESTIONS[number - 1]}")
        return Answer(cluster.http, QUESTIONS[number - 1], **options)

    first = ask(1, "on worker-0, which computes the prompt", worker="worker-0")
    expect(first.tiers["computed"] == first.usage["prompt_tokens"], "question 1 is computed")
    cluster.wait_pushed("worker-0")
    second = ask(2, "on worker-1, which loads the prompt from the KV store", worker="worker-1")
    expect(second.worker == "worker-1", "worker-1 answers question 2")
    expect(second.loaded() >= SHARED_TOKENS_MIN, "worker-1 loads the shared prompt from the store")
    third = ask(3, "where the router likes")
    expect(third.tiers["local"] + third.loaded() >= SHARED_TOKENS_MIN, "question 3 reuses the prompt")
    check = ask(2, "again on worker-0, without any cache", worker="worker-0", cache_scope="none")
    expect(check.tiers["computed"] == check.usage["prompt_tokens"], "the check is computed")
    expect(second.token_ids and second.token_ids == check.token_ids,
           "the loaded and the computed prompt give the same tokens")
    if second.ttft_s and check.ttft_s:
        print(f"\n      Sharing saved question 2 the work of {second.loaded()} of "
              f"{second.usage['prompt_tokens']} prompt tokens: it began after {second.ttft_s:.2f} s "
              f"instead of {check.ttft_s:.2f} s, with the same {len(check.token_ids)} tokens.")


def stay_up(cluster, programs):
    url = f"http://{cluster.http}"
    body = {"model": "default", "max_tokens": MAX_TOKENS,
            "messages": [{"role": "user", "content": "Who are you?"}]}
    pagoda = str(programs / "pagoda")
    stats = shlex.join([pagoda, "kv", "stats", "--kvstore", cluster.kvstore_grpc])
    chat = shlex.join([pagoda, "chat", "--http", url, "--system-file", str(SYSTEM_PROMPT)])
    try:
        print("\nThe cluster stays up. Try:\n"
              f"  curl {url}/v1/chat/completions -H 'Content-Type: application/json' -d '{json.dumps(body)}'\n"
              f"  {chat}\n  {stats}\nCtrl-C stops everything.", flush=True)
        cluster.process.wait()
    except KeyboardInterrupt:
        return
    raise Failed(f"the cluster ended: {cluster.last_error()}")


def main():
    parser = argparse.ArgumentParser(description="Shows the main job on a local cluster.")
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder of the programs")
    parser.add_argument("--model", required=True, help="GGUF file")
    parser.add_argument("--once", action="store_true", help="end after the demonstration")
    parser.add_argument("--seconds-before", type=int, default=0, help="added to the reported total")
    parser.add_argument("flags", nargs="*", help="after --: further flags for `pagoda up`")
    options = parser.parse_args()

    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the same as Ctrl-C
    began = time.monotonic()
    cluster = Cluster(options.programs.absolute(), options.model, not options.once, options.flags)
    try:
        cluster.wait_ready()
        demonstrate(cluster)
        seconds = time.monotonic() - began
        print(f"      done in {seconds:.0f} s; everything together took {options.seconds_before + seconds:.0f} s")
        if not options.once:
            stay_up(cluster, options.programs)
    except (Failed, OSError, http.client.HTTPException) as problem:
        print(f"\nquick start: it did not work: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        # A second Ctrl-C must not cut this short: it would leave the cluster behind.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        status = cluster.stop()
    if status != 0:
        print(f"quick start: the cluster ended with status {status}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
