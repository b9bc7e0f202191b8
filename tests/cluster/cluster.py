"""A real cluster for tests: `pagoda up` as a child process, and a small HTTP client. Standard library only."""
import contextlib
import http.client
import itertools
import json
import pathlib
import random
import re
import select
import signal
import subprocess
import tempfile
import time
import urllib.parse

READY_TIMEOUT_S = 120  # a loaded sanitizer build on two cores takes its time; a hang ends here
REQUEST_TIMEOUT_S = 120
LOG_END = 20000  # characters of a log that a failure shows
# The tests' models compute faster than any store answers: who tests loading insists on it.
INSIST_ON_LOADING = ("--kv-load", "load")
# An overloaded machine may hold a report up for longer than the default.
PATIENT = ("--frozen-after-ms", "20000")


class ApiError(Exception):
    """An answer with a 4xx or 5xx status."""

    def __init__(self, status, headers, body):
        super().__init__(f"{status}: {body[:300]}")
        self.status, self.headers, self.body = status, headers, body

    @property
    def message(self):
        return json.loads(self.body)["error"]["message"]


class Cluster:
    """`pagoda up` with `flags`; use as a context manager. Without `restart` a process that dies stays away."""

    def __init__(self, bin_dir, model, workers=2, flags=(), restart=False):
        free_ports = ["--http-address", "127.0.0.1:0", "--grpc-address", "127.0.0.1:0"]
        self.command = [str(pathlib.Path(bin_dir) / "pagoda"), "up", "--model", str(model), "--workers",
                        str(workers), *free_ports, *([] if restart else ["--no-restart"]), "--poison-freed-blocks",
                        *flags]
        if "--frozen-after-ms" not in flags:
            self.command += PATIENT
        self.log = tempfile.TemporaryFile(mode="w+")

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        try:
            line = self._first_line()
            self.ready = json.loads(line)
        except Exception as error:
            self._end(signal.SIGKILL)
            raise AssertionError(f"the cluster did not start: {error}\n{self.log_text()[-LOG_END:]}") from error
        self.http = urllib.parse.urlsplit(self.ready["http"]).netloc
        self.pids = self.ready["pids"]
        return self

    def __exit__(self, *exc):
        if exc[0] is not None:
            print(self.log_text()[-LOG_END:])
        self._end(signal.SIGTERM)

    def _end(self, signal_number):
        self.process.send_signal(signal_number)
        try:
            self.exit_status = self.process.wait(READY_TIMEOUT_S)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()

    def _first_line(self):
        deadline, stdout = time.monotonic() + READY_TIMEOUT_S, self.process.stdout
        while not select.select([stdout], [], [], 0.1)[0]:
            if time.monotonic() > deadline:
                raise AssertionError("not ready in time")
        line = stdout.readline()
        if not line:
            raise AssertionError(f"exit status {self.process.wait()}")
        return line

    def log_text(self):
        return log_text(self.log)

    # HTTP

    @contextlib.contextmanager
    def connection(self, address=None):
        host, port = (address or self.http).rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=REQUEST_TIMEOUT_S)
        try:
            yield connection
        finally:
            connection.close()

    def request(self, method, path, body=None, headers=None, address=None):
        """(headers, parsed JSON or text) of a 2xx answer; ApiError otherwise."""
        raw = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        with self.connection(address) as connection:
            connection.request(method, path, raw, {"Content-Type": "application/json", **(headers or {})})
            response = connection.getresponse()
            text = response.read().decode()
            if response.status >= 300:
                raise ApiError(response.status, response.headers, text)
            kind = response.headers.get("Content-Type", "")
            return response.headers, json.loads(text) if kind.startswith("application/json") else text

    def complete(self, prompt, worker=None, **fields):
        """/v1/completions with token ids returned; adds `.worker` from the response header."""
        body = {"model": "default", "prompt": prompt, "temperature": 0, "return_token_ids": True, **fields}
        headers, answer = self.request("POST", "/v1/completions", body,
                                       {"x-pagoda-worker": worker} if worker else None)
        answer["worker"] = headers["x-pagoda-worker"]
        return answer

    def stream(self, path, body, headers=None):
        """The events of a streamed answer, `[DONE]` not included but required."""
        with self.connection() as connection:
            connection.request("POST", path, json.dumps({**body, "stream": True}),
                               {"Content-Type": "application/json", **(headers or {})})
            response = connection.getresponse()
            if response.status != 200:
                raise ApiError(response.status, response.headers, response.read().decode())
            done = False
            for line in response:
                line = line.decode().rstrip("\r\n")
                if not line:
                    continue
                assert line.startswith("data: "), line
                if line == "data: [DONE]":
                    done = True
                else:
                    assert not done, "an event after [DONE]"
                    yield json.loads(line[len("data: "):])
            assert done, "the stream ended without [DONE]"

    def workers(self):
        return {w["name"]: w for w in self.request("GET", "/pagoda/v1/workers")[1]["workers"]}

    def metric(self, name, address=None, **labels):
        """The sum of all samples of pagoda:`name` whose labels include `labels`; 0 when there is none."""
        text = self.request("GET", "/metrics", address=address)[1]
        total = 0.0
        for line in text.splitlines():
            match = re.fullmatch(r"pagoda:(\w+)(?:\{(.*)\})? (\S+)", line)
            if not match or match[1] != name:
                continue
            found = dict(re.findall(r'(\w+)="([^"]*)"', match[2] or ""))
            if all(found.get(key) == value for key, value in labels.items()):
                total += float(match[3])
        return total

    def worker_metric(self, worker, name, **labels):
        return self.metric(name, self.workers()[worker]["http"], **labels)

    def wait_for_restart(self, name):
        """Until another process than `pids[name]` is ready in its place; updates and returns the pid.

        A router may need a moment more until the workers have registered again."""
        old = self.pids[name]
        eventually(lambda: self._last_ready_pid(name) not in (None, old), f"{name} was restarted")
        self.pids[name] = self._last_ready_pid(name)
        if name.startswith("worker-"):
            eventually(lambda: self.workers()[name]["pid"] == self.pids[name], "the router knows it")
        return self.pids[name]

    def _last_ready_pid(self, name):
        pids = re.findall(rf'"msg":"ready","child":"{name}","pid":(\d+)', self.log_text())
        return int(pids[-1]) if pids else None

    def wait_for_pushes(self, worker):
        """Until the worker has no block on its way to the store."""
        eventually(lambda: self.worker_metric(worker, "kv_push_pending_blocks") == 0, "pushes are pending")


def log_text(log):
    """All of a log that children are writing."""
    # Opened anew: they write at the position of `log`, which reading would move.
    with open(f"/proc/self/fd/{log.fileno()}", encoding="utf-8", errors="replace") as reader:
        return reader.read()


def eventually(condition, what):
    """Polls `condition`; what is tested is that it becomes true, not when.

    It may be an attempt at what a busy machine sometimes prevents though the program is right: a lookup that is not
    answered in time is given up, and a breaker that has opened lets none through for seconds."""
    deadline = time.monotonic() + REQUEST_TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"never became true: not ({what})")
        time.sleep(0.01)


def prompt_ids(seed, length):
    return [random.Random(seed * 1000 + i).randrange(256) for i in range(length)]


new_seeds = itertools.count(1000)


def new_prompt(length):
    """One that nobody has asked before."""
    return prompt_ids(next(new_seeds), length)


def ids(answer):
    return answer["choices"][0]["token_ids"]


def sources(answer):
    """Where the prompt's tokens came from."""
    usage = answer["usage"]["pagoda"]
    return {key: usage[key] for key in ("computed", "local", "ram", "disk")}


def until_loaded(attempt, tokens):
    """The first of `attempt()`'s results whose last answer took that many tokens from the store's RAM."""
    results = []

    def loaded():
        results.append(attempt())
        return sources(results[-1][-1])["ram"] == tokens
    eventually(loaded, f"{tokens} tokens come from the store")
    return results[-1]
