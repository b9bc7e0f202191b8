#!/usr/bin/env python3
"""The commands of `pagoda` against a running cluster, with the exit statuses that scripts see.

usage: ctl_test.py BIN_DIR MODEL
"""
import json
import pathlib
import subprocess
import sys
import unittest

from cluster import REQUEST_TIMEOUT_S, Cluster

PROMPT = "The quick brown fox jumps over the lazy dog, " * 6
NOBODY = "127.0.0.1:1"  # a port that only root could listen on


def run(program, *arguments, stdin=""):
    result = subprocess.run([pathlib.Path(BIN_DIR) / program, *arguments], input=stdin.encode(), capture_output=True,
                            timeout=REQUEST_TIMEOUT_S)
    # Not text=True, which would change line ends that a model wrote.
    result.stdout, result.stderr = result.stdout.decode(), result.stderr.decode()
    return result


class CtlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(BIN_DIR, MODEL, workers=1))

    def generate(self, *arguments, **options):
        return run("pagoda", "generate", "--http", self.cluster.ready["http"], *arguments, **options)

    def kv_stats(self, *arguments):
        return run("pagoda", "kv", "stats", "--kvstore", self.cluster.ready["kvstore"], *arguments)

    def test_generate_prints_what_the_api_answers(self):
        expected = self.cluster.complete(PROMPT, max_tokens=12)["choices"][0]
        greedy = ["--max-tokens", "12", "--temperature", "0"]
        for given in (self.generate("--prompt", PROMPT, *greedy), self.generate(*greedy, stdin=PROMPT + "\n")):
            self.assertEqual((given.returncode, given.stdout), (0, expected["text"] + "\n"), given.stderr)
            self.assertRegex(given.stderr, r"^worker-0 \| prompt \d+ = \d+ computed")
        answer = self.generate("--prompt", PROMPT, *greedy, "--output", "json")
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        answer = json.loads(answer.stdout)
        self.assertEqual((answer["text"], answer["finish_reason"]), (expected["text"], expected["finish_reason"]))
        self.assertLessEqual(answer["usage"]["completion_tokens"], 12)
        self.assertGreater(answer["usage"]["prompt_tokens"], 0)

    def test_a_seed_repeats_what_was_drawn(self):
        drawn = [self.generate("--prompt", "Once", "--temperature", "2", "--seed", seed, "--output", "json")
                 for seed in ("7", "7", "8")]
        self.assertEqual([run.returncode for run in drawn], [0, 0, 0])
        texts = [json.loads(run.stdout)["text"] for run in drawn]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_kv_stats_tell_what_the_store_holds(self):
        self.cluster.complete(PROMPT, max_tokens=1)
        self.cluster.wait_for_pushes("worker-0")
        stats = self.kv_stats("--output", "json")
        self.assertEqual((stats.returncode, stats.stderr), (0, ""))
        stats = json.loads(stats.stdout)
        ram = next(tier for tier in stats["tiers"] if tier["tier"] == "ram")
        self.assertGreater(ram["blocks"], 0)
        self.assertGreater(ram["bytes_used"], 0)
        self.assertEqual(ram["bytes_limit"], 1 << 30)  # the default of `pagoda up`
        self.assertEqual(sum(owner["blocks"] for owner in stats["owners"]), ram["blocks"])
        self.assertEqual((stats["divergent_puts"], stats["corrupt_blocks"]), (0, 0))
        text = self.kv_stats()
        self.assertEqual((text.returncode, text.stderr), (0, ""))
        self.assertIn(f"shard {stats['shard_id']}, version {stats['version']}, up ", text.stdout)
        self.assertRegex(text.stdout, rf"(?m)^ram +{ram['blocks']} .* 1 GiB +0$")

    def test_nobody_at_the_address_is_status_1_with_words(self):
        http = f"http://{NOBODY}"
        for command in (["generate", "--prompt", "x", "--http", http], ["chat", "x", "--http", http],
                        ["workers", "--http", http], ["drain", "worker-0", "--router", NOBODY],
                        ["kv", "stats", "--kvstore", NOBODY]):
            result = run("pagoda", *command)
            self.assertEqual((result.returncode, result.stdout.strip()), (1, ""), command)
            self.assertRegex(result.stderr, r"^pagoda [a-z ]+: .*[a-z]{3}")

    def test_wrong_usage_is_status_2_and_help_is_0(self):
        for command in (["generate"], ["kv", "stats"], ["chat"], ["workers"], ["drain", "worker-0"],
                        ["health", NOBODY]):
            wrong = run("pagoda", *command, "--no-such-flag")
            self.assertEqual((wrong.returncode, wrong.stdout), (2, ""), command)
            self.assertIn("no-such-flag", wrong.stderr)
            self.assertEqual(run("pagoda", *command, "--help").returncode, 0, command)
        self.assertEqual(self.generate().returncode, 2)  # no prompt
        self.assertEqual(run("pagoda", "kv").returncode, 2)
        self.assertIn("stats", run("pagoda", "kv", "--help").stdout)

    def test_a_service_without_its_model_is_wrong_usage(self):
        for program in ("pagoda-worker", "pagoda-router"):
            result = run(program)
            self.assertEqual((result.returncode, result.stdout), (2, ""), program)
            self.assertEqual(result.stderr, f"{program}: --model FILE is required\n")


if __name__ == "__main__":
    MODEL = sys.argv.pop(2)
    BIN_DIR = sys.argv.pop(1)
    unittest.main(verbosity=2)
