#!/usr/bin/env python3
"""What the parameters of sampling do to the answers of a running cluster.

usage: sampling_test.py BIN_DIR MODEL
"""
import sys
import unittest

from cluster import Cluster, eventually, ids, prompt_ids

PROMPT = prompt_ids(1, 40)
FORCED = 100  # the largest bias: more than the tiny model's logits can differ


class SamplingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(BIN_DIR, MODEL, workers=2))

    def ask(self, max_tokens=12, prompt=PROMPT, **fields):
        return self.cluster.complete(prompt, max_tokens=max_tokens, ignore_eos=True, **fields)

    def test_a_bias_forces_or_forbids_a_token(self):
        self.assertEqual(ids(self.ask(logit_bias={"5": FORCED})), [5] * 12)
        greedy = ids(self.ask())
        self.assertNotEqual(ids(self.ask(logit_bias={str(greedy[0]): -FORCED}))[0], greedy[0])

    def test_a_frequency_penalty_shares_the_answer_between_two_forced_tokens(self):
        tokens = ids(self.ask(60, logit_bias={"5": FORCED, "6": FORCED}, frequency_penalty=2))
        self.assertEqual(set(tokens), {5, 6})
        # The count that lags gains 2 a token, so the two stay together but for what the logits differ.
        self.assertLess(abs(tokens.count(5) - tokens.count(6)), 8)

    def test_a_repetition_penalty_counts_the_prompt_and_is_given_once(self):
        biases = {"5": FORCED, "6": FORCED - 10}
        self.assertEqual(ids(self.ask(4, [5], logit_bias=biases)), [5] * 4)
        # 5 is halved from the start, 6 once it has come.
        self.assertEqual(ids(self.ask(4, [5], logit_bias=biases, repetition_penalty=2)), [6, 5, 5, 5])

    def test_no_stop_token_comes_before_min_tokens(self):
        stops = {"stop_token_ids": [5], "logit_bias": {"5": FORCED, "6": FORCED - 10}}
        self.assertEqual(ids(self.ask(**stops)), [5])
        answer = self.ask(min_tokens=3, **stops)
        self.assertEqual(ids(answer), [6, 6, 6, 5])
        self.assertEqual(answer["choices"][0]["finish_reason"], "stop")

    def test_min_p_1_leaves_the_likeliest_token(self):
        self.assertEqual(ids(self.ask(temperature=2, min_p=1)), ids(self.ask()))

    def test_a_stop_string_ends_the_answer_and_frees_the_worker(self):
        whole = self.ask(400)["choices"][0]["text"]
        stop = whole[40:44]
        right = whole[:whole.index(stop)]
        answer = self.ask(400, stop=["\0never\0", stop])
        self.assertEqual(answer["choices"][0]["text"], right)
        self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        used = answer["usage"]
        self.assertEqual(used["prompt_tokens"], len(PROMPT))
        self.assertEqual(used["completion_tokens"], len(ids(answer)))
        self.assertEqual(sum(used["pagoda"][source] for source in ("computed", "local", "ram", "disk")), len(PROMPT))
        body = {"model": "default", "prompt": PROMPT, "max_tokens": 400, "temperature": 0, "ignore_eos": True,
                "stop": stop}
        events = list(self.cluster.stream("/v1/completions", body))
        self.assertEqual("".join(e["choices"][0]["text"] for e in events), right)
        eventually(lambda: all(w["running"] == 0 for w in self.cluster.workers().values()), "the workers are free")

    def test_choices_differ_and_each_depends_on_the_request_alone(self):
        fields = {"temperature": 1, "seed": 3}
        three = self.ask(n=3, **fields)
        tokens = [choice["token_ids"] for choice in sorted(three["choices"], key=lambda c: c["index"])]
        self.assertEqual(len(set(map(tuple, tokens))), 3)
        self.assertEqual(three["usage"]["prompt_tokens"], len(PROMPT))
        self.assertEqual(three["usage"]["completion_tokens"], 36)
        self.assertEqual(ids(self.ask(**fields)), tokens[0])
        again = sorted(self.ask(n=3, **fields)["choices"], key=lambda c: c["index"])
        self.assertEqual([choice["token_ids"] for choice in again], tokens)


if __name__ == "__main__":
    MODEL = sys.argv.pop(2)
    BIN_DIR = sys.argv.pop(1)
    unittest.main(verbosity=2)
