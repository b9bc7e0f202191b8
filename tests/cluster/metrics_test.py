#!/usr/bin/env python3
"""R66: every metric has a test that moves it.

Drives a cluster and watches /metrics of the router, the workers and the store. Each series must have moved
here, or be named in MOVED_BY_UNIT_TEST. A metric's name that the sources register and no service ever showed is
a failure too.

usage: metrics_test.py BIN_DIR MODEL SOURCE_DIR
"""
import collections
import concurrent.futures
import json
import pathlib
import re
import sys
import tempfile
import unittest

from cluster import INSIST_ON_LOADING, ApiError, Cluster, eventually, new_prompt, sources

KV_TRANSFER = "services/worker/kv_transfer_test.cc"
ENGINE = "services/worker/engine_test.cc"
ENGINE_METRICS = "services/worker/engine_metrics_test.cc"
QUARANTINE = "services/worker/engine_quarantine_test.cc"
SERVICE = "services/kvstore/kvstore_service_test.cc"
DISK = "services/kvstore/disk_tier_test.cc"
TIERED = "services/kvstore/tiered_store_test.cc"
HANDSHAKE = "common/rpc/store_handshake_test.cc"
RESUME = "services/router/generation_resume_test.cc"

# Series that no healthy cluster moves: the unit test that does, and what in its body shows it. One line each.
MOVED_BY_UNIT_TEST = {
    "http_refused_connections_total": (
        "common/http/http_server_test.cc", "HttpServerTest.ConnectionsOverTheLimitAreRefusedAndLaterOnesServed",
        "http_refused_connections_total 1"),
    "router_retries_total": (
        "services/router/router_http_test.cc", "RouterHttpTest.AFailureBeforeTheFirstTokenIsTriedElsewhereAndCounted",
        "router_retries_total 1"),
    "router_resumes_total": (RESUME, "ResumeTest.AnAnswerIsContinuedTwiceAtMost", "router_resumes_total 2"),
    "router_killers_refused_total": (
        RESUME, "ResumeTest.ARequestThatTwoWorkersDiedOfIsRefusedAndTheThirdLives", "router_killers_refused_total 2"),
    "router_worker_hangs_total{state=frozen}": (
        RESUME, "ResumeTest.AFrozenWorkerLosesItsStreamsAndGetsNoneUntilItReports", 'state=\\"frozen\\"} 1'),
    "router_worker_hangs_total{state=stuck}": (
        RESUME, "ResumeTest.AWorkerWithWorkAndNoStepIsStuck", 'state=\\"stuck\\"} 1'),
    "kv_load_blocks_total{result=missing}": (
        KV_TRANSFER, "KvTransferTest.FewerBlocksThanPromisedIsAnAnswerForEachBlock", 'Loads("missing"), 1'),
    "kv_load_blocks_total{result=corrupt}": (
        KV_TRANSFER, "KvTransferTest.ACorruptBlockIsNotUsed", 'Loads("corrupt"), 1'),
    "kv_load_blocks_total{result=refused}": (
        KV_TRANSFER, "KvTransferTest.R8ABlockOfAnotherSpaceIsRefusedBeforeAByteIsTakenAndReported",
        'Loads("refused"), 1'),
    "kv_load_blocks_total{result=failed}": (
        KV_TRANSFER, "KvTransferTest.R26CallsThatMissTheirDeadlinesAreCountedByKind", 'Loads("failed"), 2'),
    "kv_push_blocks_total{result=dropped}": (
        KV_TRANSFER, "KvTransferTest.R39ASlowStoreMakesPushesDropAndHoldsNothingUp", 'Pushes("dropped"), 3'),
    "kv_push_blocks_total{result=have}": (
        KV_TRANSFER, "KvTransferTest.R66EveryAnswerToAPushIsCounted", 'Pushes("have"), 1'),
    "kv_push_blocks_total{result=divergent}": (
        KV_TRANSFER, "KvTransferTest.R66EveryAnswerToAPushIsCounted", 'Pushes("divergent"), 1'),
    "kv_push_blocks_total{result=no_room}": (
        KV_TRANSFER, "KvTransferTest.R66EveryAnswerToAPushIsCounted", 'Pushes("no_room"), 1'),
    "kv_push_blocks_total{result=corrupt}": (
        KV_TRANSFER, "KvTransferTest.R66EveryAnswerToAPushIsCounted", 'Pushes("corrupt"), 1'),
    "kv_push_blocks_total{result=failed}": (
        KV_TRANSFER, "KvTransferTest.R66EveryAnswerToAPushIsCounted", 'Pushes("failed"), 1'),
    "kv_push_pending_blocks": (
        KV_TRANSFER, "KvTransferTest.R39ASlowStoreMakesPushesDropAndHoldsNothingUp",
        'Value("kv_push_pending_blocks"), 2'),
    "kv_deadline_misses_total{call=lookup}": (
        KV_TRANSFER, "KvTransferTest.R26CallsThatMissTheirDeadlinesAreCountedByKind", 'missed("lookup"), 1'),
    "kv_deadline_misses_total{call=load}": (
        KV_TRANSFER, "KvTransferTest.R26CallsThatMissTheirDeadlinesAreCountedByKind", 'missed("load"), 1'),
    "kv_deadline_misses_total{call=push}": (
        KV_TRANSFER, "KvTransferTest.R26CallsThatMissTheirDeadlinesAreCountedByKind", 'missed("push"), 1'),
    "kv_recheck_blocks_total{result=ok}": (
        QUARANTINE, "EngineQuarantineTest.RightBlocksPassTheirRecheckAndNobodySeesIt", 'Rechecks("ok") == 12'),
    "kv_recheck_blocks_total{result=mismatch}": (
        QUARANTINE, "EngineQuarantineTest.AWrongBlockEndsItsReadersAndNothingOfItsProducerIsLoadedAgain",
        'Rechecks("mismatch"), 1'),
    "kv_recheck_blocks_total{result=dropped}": (
        QUARANTINE, "EngineQuarantineTest.ARecheckThatNeverRanIsCountedAsDropped", 'Rechecks("dropped"), 0'),
    "num_requests_waiting": (
        ENGINE_METRICS, "EngineMetricsTest.RequestsThatWaitAreCounted", 'Value("num_requests_waiting"), '),
    "request_success_total{finished_reason=deadline}": (
        ENGINE, "EngineTest.ARequestEndsWhenItsDeadlinePasses", 'finished_reason=\\"deadline\\"}"), 1'),
    "request_success_total{finished_reason=error}": (
        ENGINE, "EngineTest.NonFiniteLogitsEndThatRequestOnly", 'finished_reason=\\"error\\"}"), 1'),
    "prompt_tokens_by_source_total{source=disk}": (
        ENGINE_METRICS, "EngineMetricsTest.R66EachSourceOfPromptTokensIsCounted", 'source=\\"disk\\"}"), 4'),
    "kv_breaker_state": (
        "common/kv/breaker_store_test.cc", "BreakerStoreTest.R33ThreeFailuresInARowOpenItAndThenNobodyWaits",
        "kv_breaker_state 2"),
    "kv_breaker_retry_in_seconds": (
        "common/kv/breaker_store_test.cc", "BreakerStoreTest.R33ThreeFailuresInARowOpenItAndThenNobodyWaits",
        "kv_breaker_retry_in_seconds 0.5"),
    "kv_breaker_opened_total": (
        "common/kv/breaker_store_test.cc", "BreakerStoreTest.R33ThreeFailuresInARowOpenItAndThenNobodyWaits",
        "kv_breaker_opened_total 1"),
    "kv_handshake_mismatches_total": (
        HANDSHAKE, "StoreHandshakeTest.R25AStoreOfAForeignProtocolIsAbsentAnAlarmAndOneErrorLine",
        "kv_handshake_mismatches_total 2"),
    "kv_store_restarts_total": (
        HANDSHAKE, "StoreHandshakeTest.R28ARestartedStoreIsCountedAndLoggedOnceAndItsOldLimitsAreForgotten",
        "kv_store_restarts_total 1"),
    "kv_corrupt_blocks_total{hop=get}": (
        "services/kvstore/remote_block_store_test.cc",
        "RemoteBlockStore.BytesThatChangedOnTheWayAreCorruptCountedAndTheRestIsUsed", 'hop=\\"get\\"} 4'),
    "kv_corrupt_blocks_total{hop=put}": (
        SERVICE, "KvStoreServiceTest.AnUnaskedBlockIsOneRoundTripAndAnswersLikeAnOffer", 'hop=\\"put\\"} 1'),
    "kv_corrupt_blocks_total{hop=ram}": (
        "services/kvstore/ram_tier_test.cc", "RamTier.BytesThatChangedInTheSlabAreCorruptDroppedAndCounted",
        'hop=\\"ram\\"} 2'),
    "kv_corrupt_blocks_total{hop=disk}": (
        DISK, "DiskTierTest.R13AFlippedByteIsFoundQuarantinedAndNeverComesBack", 'hop=\\"disk\\"} 1'),
    "kv_corrupt_blocks_total{hop=reader}": (
        "services/kvstore/kvstore_server_test.cc", "KvStoreServer.R13AReportOfABlockInBothTiersCountsOnce",
        'hop=\\"reader\\"} 1'),
    "kvstore_bytes{tier=disk}": (DISK, "DiskTierTest.TheOldestGoFirst", 'kvstore_bytes{tier=\\"disk\\"} "'),
    "kvstore_blocks{tier=disk}": (DISK, "DiskTierTest.TheOldestGoFirst", 'kvstore_blocks{tier=\\"disk\\"} 4'),
    "kvstore_disk_errors_total{op=write}": (
        DISK, "DiskTierTest.ADiskThatIsFullIsLeftAloneShownAndComesBack", 'op=\\"write\\"} 0'),
    "kvstore_disk_errors_total{op=read}": (
        DISK, "DiskTierTest.ABlockThatCannotBeReadIsForgotten", 'op=\\"read\\"} 1'),
    "kvstore_disk_discarded_total": (
        "services/kvstore/kvstore_server_test.cc", "KvStoreServer.ADatabaseThatCannotBeOpenedNeverStopsTheStore",
        "kvstore_disk_discarded_total 0"),
    "kvstore_spills_total{result=stored}": (
        TIERED, "TieredStoreTest.WhatRamEvictsIsOnDiskAndIsReadFromThere", 'result=\\"stored\\"} 6'),
    "kvstore_spills_total{result=failed}": (
        TIERED, "TieredStoreTest.AStoppedDiskIsAMissAndPutsGoOn", 'result=\\"failed\\"} 6'),
    "kvstore_spills_total{result=dropped}": (
        TIERED, "TieredStoreTest.ASpillThatIsFullDropsBlocksAndNoPutWaits", 'result=\\"dropped\\"} 6'),
    "kv_divergent_puts_total": (
        "services/kvstore/ram_tier_test.cc", "RamTier.R66ItsMetricsMove", "kv_divergent_puts_total 1"),
    "kvstore_requests_total{op=find_missing,result=error}": (
        SERVICE, "KvStoreServiceTest.KeysOfAWrongLengthOrNumberAreRefusedByName",
        'Requests("find_missing", "error"), 3'),
    "kvstore_requests_total{op=get,result=missing}": (
        SERVICE, "KvStoreServiceTest.AnyProtobufClientCanPutAndGet",
        'Requests("get", "missing"), 1'),
    "kvstore_requests_total{op=get,result=corrupt}": (
        SERVICE, "KvStoreServiceTest.ABlockThatIsFoundCorruptIsAnAnswerAndTheStreamGoesOn",
        'Requests("get", "corrupt"), 1'),
    "kvstore_requests_total{op=put,result=have}": (
        SERVICE, "KvStoreServiceTest.AnUnaskedBlockIsOneRoundTripAndAnswersLikeAnOffer",
        'Requests("put", "have"), 1'),
    "kvstore_requests_total{op=put,result=divergent}": (
        SERVICE, "KvStoreServiceTest.AnUnaskedBlockIsOneRoundTripAndAnswersLikeAnOffer",
        'Requests("put", "divergent"), 1'),
    "kvstore_requests_total{op=put,result=corrupt}": (
        SERVICE, "KvStoreServiceTest.AnUnaskedBlockIsOneRoundTripAndAnswersLikeAnOffer",
        'Requests("put", "corrupt"), 1'),
    "kvstore_requests_total{op=put,result=no_room}": (
        SERVICE, "KvStoreServiceTest.AFullStoreAnswersNoRoomToTheOffer",
        'Requests("put", "no_room"), 1'),
    "kvstore_stalled_streams_total{op=put}": (
        SERVICE, "KvStoreServiceTest.RoomThatAStalledClientWasPromisedComesBack",
        'op=\\"put\\"} 1'),
    "kvstore_stalled_streams_total{op=get}": (
        SERVICE, "KvStoreServiceTest.ASlowReaderIsCancelledAndPinsNothingAnyMore",
        'op=\\"get\\"} 1'),
}

# Set when the process starts, and by its use of the machine: there is nothing to drive, but a value over 0.
PROCESS_WIDE = {"build_info", "process_resident_memory_bytes", "process_threads", "process_open_fds",
                "process_cpu_seconds_total"}
# Labels that name things, not kinds of things.
UNBOUNDED_LABELS = {"worker", "route", "code", "service", "version", "le"}


class Watch:
    """The values that each series has had."""

    def __init__(self, cluster):
        self.cluster = cluster
        # `up` says on its standard output what clients need; the store's address is in its log.
        log = map(json.loads, filter(None, cluster.log_text().splitlines()))
        self.addresses = [None, next(line["http"] for line in log
                                     if line["msg"] == "ready" and line.get("child") == "kvstore")]
        self.addresses += [worker["http"] for worker in cluster.workers().values()]
        self.values = collections.defaultdict(set)

    def look(self):
        for address in self.addresses:
            text = self.cluster.request("GET", "/metrics", address=address)[1]
            for name, labels, value in re.findall(r"^pagoda:(\w+)(?:\{(.*)\})? (\S+)$", text, re.M):
                kept = [f"{key}={label}" for key, label in re.findall(r'(\w+)="([^"]*)"', labels)
                        if key not in UNBOUNDED_LABELS]
                name = re.sub(r"_(bucket|sum|count)$", "", name)
                self.values[name + ("{" + ",".join(kept) + "}" if kept else "")].add(float(value))

    def moved(self):
        """A counter or gauge moves when it is not 0 for once; counters begin at 0."""
        return {series for series, values in self.values.items() if values != {0.0}}


def registered_names():
    """The metrics that the sources register."""
    for folder in ("common", "services"):
        for path in (SOURCE_DIR / folder).rglob("*.cc"):
            if not path.name.endswith("_test.cc") and "testing" not in path.parts:
                yield from re.findall(r'\b(?:Counter|Gauge|Histogram)\(\s*"(\w+)"', path.read_text())


def name_of(series):
    return series.split("{")[0]


class MetricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as data_dir, Cluster(
                BIN_DIR, MODEL, workers=2,
                flags=("--kv-cache-bytes", "2MiB", "--data-dir", data_dir, *INSIST_ON_LOADING)) as cls.cluster:
            cls.watch = Watch(cls.cluster)
            cls.watch.look()
            cls.share()
            cls.preempt()
            cls.end_in_each_way()

    @classmethod
    def ask(cls, prompt, worker=None, **fields):
        return cls.cluster.complete(prompt, worker, ignore_eos=True, **{"max_tokens": 8, **fields})

    @classmethod
    def share(cls):
        """Computed by one worker, loaded by the other, found there again."""
        def attempt():
            prompt = new_prompt(100)
            cls.ask(prompt, "worker-0")
            cls.cluster.wait_for_pushes("worker-0")
            loaded = sources(cls.ask(prompt, "worker-1"))["ram"] > 0
            return loaded and sources(cls.ask(prompt, "worker-1"))["local"] > 0
        eventually(attempt, "a worker loads what another one computed")
        cls.watch.look()

    @classmethod
    def preempt(cls):
        """More than the pool holds: requests run, wait, and lose their blocks; pushes are under way."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(cls.ask, new_prompt(90), "worker-0", max_tokens=100) for _ in range(8)]
            while not all(request.done() for request in asked):
                cls.watch.look()
        for request in asked:
            request.result()

    @classmethod
    def end_in_each_way(cls):
        prompt = new_prompt(40)
        token = cls.ask(prompt)["choices"][0]["token_ids"][0]
        cls.ask(prompt, stop_token_ids=[token])
        eventually(lambda: cls.gone_client_was_counted(prompt), "a cancelled request was counted")
        try:
            cls.ask(prompt, max_tokens=-1)
            raise AssertionError("max_tokens -1 was taken")
        except ApiError as error:
            assert error.status == 400, error
        cls.watch.look()

    @classmethod
    def gone_client_was_counted(cls, prompt):
        """Goes away after the first token. The request may have ended by then: the caller tries again."""
        stream = cls.cluster.stream("/v1/completions", {
            "model": "default", "prompt": prompt, "max_tokens": 250, "ignore_eos": True},
            {"x-pagoda-worker": "worker-0"})
        next(stream)
        stream.close()
        metric = cls.cluster.worker_metric
        eventually(lambda: metric("worker-0", "num_requests_running") == 0, "nothing runs")
        return metric("worker-0", "request_success_total", finished_reason="cancelled") > 0

    def test_r66_every_series_is_moved_by_a_test(self):
        moved = self.watch.moved()
        still = [series for series in self.watch.values
                 if series not in moved and series not in MOVED_BY_UNIT_TEST]
        self.assertEqual(sorted(still), [], "nothing moves these: drive the cluster to it, or name a unit test")

    def test_r66_every_metric_of_the_sources_is_shown_by_a_service(self):
        shown = {name_of(series) for series in self.watch.values}
        self.assertEqual(sorted(set(registered_names()) - shown), [])

    def test_process_wide_metrics_have_a_value(self):
        for name in PROCESS_WIDE:
            values = self.watch.values[name]
            self.assertTrue(values and min(values) > 0, f"{name}: {values}")
        self.assertEqual(self.watch.values["build_info"], {1.0})

    def test_what_is_left_to_unit_tests_exists_and_is_tested_there(self):
        for series, (file, test, shown_by) in MOVED_BY_UNIT_TEST.items():
            with self.subTest(series):
                self.assertIn(series, sorted(self.watch.values), "no service has this series any more")
                text = (SOURCE_DIR / file).read_text()
                self.assertIn(name_of(series), text, file)
                suite, name = test.split(".")
                body = re.search(rf"^TEST(?:_F|_P)?\({suite},\s*{name}\) \{{$(.*?)^\}}$", text, re.M | re.S)
                self.assertIsNotNone(body, f"{file} has no test {test}")
                self.assertIn(shown_by, body[1], f"{file}: {test}")


if __name__ == "__main__":
    SOURCE_DIR = pathlib.Path(sys.argv.pop(3))
    MODEL = sys.argv.pop(2)
    BIN_DIR = sys.argv.pop(1)
    unittest.main(verbosity=2)
