"""A cluster whose programs are started one by one, around a KV store that the test breaks. Standard library only."""
import json
import os
import pathlib
import select
import signal
import subprocess
import tempfile
import time

from cluster import LOG_END, PATIENT, READY_TIMEOUT_S, Cluster, log_text

LOG_END_EACH = 4000  # characters of each program's log that a failure shows


class Program:
    """A service program that has printed its ready line."""

    def __init__(self, path, *flags):
        self.path, self.flags = path, flags
        self.log = tempfile.TemporaryFile(mode="w+")
        self.grpc = self.http = "127.0.0.1:0"
        self.start()

    def start(self):
        """The first time on free ports; after an end on the same ones."""
        command = [str(self.path), "--grpc-address", self.grpc, "--http-address", self.http, *self.flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        try:
            if not select.select([self.process.stdout], [], [], READY_TIMEOUT_S)[0]:
                raise AssertionError("not ready in time")
            ready = json.loads(self.process.stdout.readline())
        except Exception as error:
            self.end(signal.SIGKILL)
            raise AssertionError(f"{self.path.name} did not start: {error}\n{log_text(self.log)[-LOG_END:]}") from error
        self.grpc, self.http = ready["grpc"], ready["http"]

    def send(self, signal_number):
        os.kill(self.process.pid, signal_number)

    def end(self, signal_number=signal.SIGTERM):
        if self.process.poll() is None:
            self.send(signal.SIGCONT)  # a stopped process does not see SIGTERM
            self.send(signal_number)
        try:
            self.process.wait(READY_TIMEOUT_S)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()


class StoreCluster(Cluster):
    """Router, workers worker-0 ... and a store; `store` is the name of its program."""

    def __init__(self, bin_dir, model, workers=2, store="pagoda-kvstore", worker_flags=(), router_flags=PATIENT):
        self.bin_dir, self.model, self.num_workers = pathlib.Path(bin_dir), str(model), workers
        self.store_program, self.worker_flags, self.router_flags = store, worker_flags, router_flags
        self.programs = []

    def _run(self, name, *flags):
        program = Program(self.bin_dir / name, *flags)
        self.programs.append(program)
        return program

    def __enter__(self):
        try:
            self.store = self._run(self.store_program, "--ram-bytes", str(256 << 20))
            self.router = self._run("pagoda-router", "--model", self.model, "--allow-placement-override",
                                    "--kvstore", self.store.grpc, *self.router_flags)
            for i in range(self.num_workers):
                self._run("pagoda-worker", "--model", self.model, "--name", f"worker-{i}", "--router", self.router.grpc,
                          "--kvstore", self.store.grpc, "--kv-cache-bytes", str(128 << 20), "--threads", "1",
                          "--poison-freed-blocks", *self.worker_flags)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.http = self.router.http
        return self

    def __exit__(self, *exc):
        if exc[0] is not None:
            print(self.log_text())
        for program in reversed(self.programs):
            program.end()

    def log_text(self):
        return "\n".join(f"--- {p.path.name}\n{log_text(p.log)[-LOG_END_EACH:]}" for p in self.programs)

    def set_fault(self, fault):
        """Of the program faulty_kvstore: a line of tests/faults/faulty_tier.h."""
        self.request("POST", "/fault", fault.encode(), address=self.store.http)

    def store_metric(self, name, **labels):
        return self.metric(name, self.store.http, **labels)

    def time_to_first_token(self, prompt, worker, **fields):
        """Seconds from sending the request to its first event."""
        body = {"model": "default", "prompt": prompt, "temperature": 0, "max_tokens": 2, "ignore_eos": True, **fields}
        begin = time.monotonic()
        stream = self.stream("/v1/completions", body, {"x-pagoda-worker": worker})
        next(stream)
        seconds = time.monotonic() - begin
        for _ in stream:
            pass
        return seconds
