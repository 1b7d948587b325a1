# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only quick
"""Tests `howmany gpus --model MODEL --cluster NAME --up-to N`, which measures nothing."""

import contextlib
import re

import programs


class Absent(programs.TestCase):
    def gpus(self, *arguments):
        with contextlib.chdir(self.folder):
            return programs.run("howmany", "gpus", *arguments)

    def answer(self, *arguments):
        done = self.gpus(*arguments, "--json")
        self.assertEqual(done.code, 0, done)
        return done.json()

    def test_every_row_is_predicted_with_its_interval(self):
        answer = self.answer("--model", "resnet50", "--cluster", "a100x4", "--up-to", 16)
        self.assertEqual([answer["measured"], answer["rehearsed"]], [[], []])
        self.assertEqual([row["devices"] for row in answer["predicted"]], [1, 2, 4, 8, 16])
        for row in answer["predicted"]:
            self.assertLess(row["low"], row["samples_per_s"])
            self.assertLess(row["samples_per_s"], row["high"])
        self.assertEqual(answer["cluster"], "a100x4")
        self.assertIn("Nothing was measured", answer["basis"])
        self.assertEqual(answer["recommended"], 2)  # the interval of its efficiency is above the target
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_published_rates_are_within_the_intervals(self):
        """NVIDIA's and Lambda's rates on one GPU in mixed precision: of ResNet-50, and of BERT-Large with 384
        tokens and no logits of words, which has the work of this gpt2."""
        bert = "gpt2:width=1024,layers=24,heads=16,length=384,vocabulary=2"
        for model, cluster, batch, rates in (("resnet50", "a100x8", 256, [1582, 2470, 2711]),
                                             ("resnet50", "v100x8", 128, [833, 1156, 1376]),
                                             ("resnet50", "h100x8", 256, [2616, 2800]),
                                             (bert, "a100x8", 32, [123, 134, 152])):
            answer = self.answer("--model", model, "--cluster", cluster, "--up-to", 8, "--batch-per-device", batch)
            one = answer["predicted"][0]
            for rate in rates:
                self.assertGreater(rate, one["low"], (model, cluster))
                self.assertLess(rate, one["high"], (model, cluster))

    def test_more_may_do_than_is_sure(self):
        done = self.gpus("--model", "resnet50", "--cluster", "a100x4", "--up-to", 16, "--samples", "90M")
        lines = [line for line in done.out.splitlines() if not line.startswith(" ")]
        self.assertRegex(lines[0], r"^Ask for 2 GPUs: ")
        self.assertRegex(lines[2], r"^\d+ GPUs may do: ")
        rows = [line for line in done.out.splitlines() if re.match(r" *\d+  predicted  ", line)]
        self.assertEqual(len(rows), 5)
        for row in rows:
            self.assertEqual(row.count(" to "), 3, row)

    def test_strong_scaling(self):
        answer = self.answer("--model", "resnet50", "--cluster", "a100x8", "--up-to", 64, "--global-batch", 1024)
        self.assertEqual(answer["scaling"], "strong")
        rows = {row["devices"]: row for row in answer["predicted"]}
        weak = self.answer("--model", "resnet50", "--cluster", "a100x8", "--up-to", 64, "--batch-per-device", 64)
        same = {row["devices"]: row for row in weak["predicted"]}
        for devices in (2, 4, 8):  # several micro-batches for an exchange
            self.assertGreater(rows[devices]["efficiency"], same[devices]["efficiency"])
        self.assertLess(rows[32]["efficiency"], same[32]["efficiency"])  # 32 samples each
        self.assertIn("smaller", rows[64]["refused"])

    def efficiencies(self, mode, *arguments):
        rows = self.answer("--mode", mode, *arguments)["predicted"]
        return {row["devices"]: row["efficiency"] for row in rows if "refused" not in row}

    def test_other_modes_have_the_exchanges_of_their_own_code(self):
        some = ("--model", "llama:size=160m", "--cluster", "a100x8", "--up-to", 16, "--batch-per-device", 8)
        for mode, counts in (("sharded", [1, 2, 4, 8, 16]), ("tensor:ways=4", [1, 4, 8, 16])):
            self.assertEqual(list(self.efficiencies(mode, *some)), counts, mode)
        self.assertLess(self.efficiencies("sharded", *some)[16], self.efficiencies("sharded:level=1", *some)[16])
        untied = ("--model", "gpt2:size=small,tied=no", *some[2:-1])
        large, small = ([self.efficiencies(f"hybrid:stages=2,micro_batches={m}", *untied, samples)[16] for m in (2, 8)]
                        for samples in (64, 8))
        self.assertLess(large[0], large[1])  # the bubble
        self.assertGreater(small[0], small[1])  # the fixed time of micro-batches of 2 samples

    def test_layers_divided_over_nodes_are_refused(self):
        answer = self.answer("--model", "llama:size=1b", "--cluster", "a100x4", "--up-to", 8, "--mode", "tensor")
        refused = {row["devices"]: row.get("refused", "") for row in answer["predicted"]}
        self.assertEqual([devices for devices, why in refused.items() if not why], [1, 2, 4])
        self.assertIn("a node has 4", refused[8])

    def test_rows_that_do_not_fit_are_refused(self):
        answer = self.answer("--model", "gpt2:size=xl", "--cluster", "a100x8", "--mode", "sharded", "--up-to", 16,
                             "--batch-per-device", 32)
        fits = {row["devices"]: "refused" not in row for row in answer["predicted"]}
        self.assertFalse(fits[1])
        self.assertIn(" of a100x8 has 80 GB", next(row["refused"] for row in answer["predicted"] if row["devices"] == 1))

    def test_of_several_modes_each_row_has_the_fastest_that_fits(self):
        some = ("--model", "gpt2:size=xl", "--cluster", "a100x8", "--up-to", 16, "--batch-per-device", 2)
        modes = ("ddp", "sharded", "hybrid:stages=2,micro_batches=4")
        rates = {mode: {row["devices"]: row.get("samples_per_s", 0) for row in self.answer(*some, "--mode", mode)["predicted"]}
                 for mode in modes[:2]}
        answer = self.answer(*some, "--mode", ",".join(modes))
        self.assertNotIn("mode", answer["predicted"][0])
        for row in answer["predicted"][1:]:
            self.assertEqual(row["mode"], max(rates, key=lambda mode: rates[mode][row["devices"]]))
            self.assertEqual(row["samples_per_s"], rates[row["mode"]][row["devices"]])
        text = self.gpus(*some, "--mode", ",".join(modes)).out
        self.assertRegex(text, r"\n +16  (ddp|sharded) +predicted ")

    def test_strong_scaling_of_computed_modes(self):
        some = ("--model", "bert_large", "--cluster", "a100x8", "--up-to", 64, "--global-batch", 512, "--batch-per-device", 16)
        ddp, sharded = self.efficiencies("ddp", *some), self.efficiencies("sharded:level=1", *some)
        self.assertEqual(sharded.keys(), ddp.keys())
        for devices in (2, 4, 8):  # in micro-batches of the same samples, with exchanges that are hidden
            self.assertAlmostEqual(sharded[devices] / ddp[devices], 1, delta=0.03)
        once = self.efficiencies("sharded:level=1,accumulate=1", *some)
        self.assertGreater(once[8], sharded[8])  # 64 samples at once instead of 4 times 16

    def test_modes_that_cannot_be_computed_are_refused(self):
        some = ("--model", "bert_large", "--cluster", "a100x8", "--up-to", 8)
        for mode in ("data_parallel", "model", "single", "hybrid:across=model", "ddp,model"):
            self.assert_refused(self.gpus(*some, "--mode", mode), "--mode", "pipeline")
        self.assert_refused(self.gpus(*some, "--mode", "shardd"), "--mode")
        self.assert_refused(self.gpus(*some, "--mode", "sharded:level=4"), "level", "4")

    def test_says_what_a_step_holds(self):
        some = ("--model", "resnet50", "--batch-per-device", 64)
        rows = programs.run("howmany", "memory", *some, "--mode", "ddp", "--device-count", 2, "--optimizer", "adamw",
                            "--precision", "bf16", "--json").json()["rows"]
        basis = self.answer(*some, "--cluster", "a100x4", "--up-to", 4)["basis"]
        self.assertIn(f"{rows[0]['peak_bytes'] / 1e9:.3g} GB", basis)

    def test_what_does_not_fit_is_refused_with_what_does(self):
        some = ("--model", "gpt2:size=xl", "--cluster", "h100x8", "--up-to", 8)
        refused = self.gpus(*some, "--batch-per-device", 64)
        self.assert_refused(refused, "64 samples per GPU", "has 80 GB", "--batch-per-device ")
        fits = int(refused.err.split("--batch-per-device ")[1].split()[0])
        self.assertIn(" of 80 GB", self.answer(*some, "--batch-per-device", fits)["basis"])

    def test_what_only_a_measurement_can_honour_is_refused(self):
        some = ("--model", "resnet50", "--cluster", "a100x4", "--up-to", 16)
        self.assert_refused(self.gpus(*some, "--rounds", 3, "--out", "x"), "--rounds, --out")
        self.assert_refused(self.gpus(*some, "--data", "synthetic"), "--data")
        self.assert_refused(self.gpus(*some, "--try-ddp"), "--try-ddp")
        self.assert_refused(self.gpus(*some, "--precision", "int8"), "int8")
        self.assert_refused(self.gpus("--cluster", "a100x4", "--up-to", 16), "--model")
        self.assert_refused(self.gpus("--model", "resnet50", "--cluster", "a100x4"), "--up-to")

    def test_models_and_precisions_without_published_rates_are_refused(self):
        for model, words in (("mlp", "--batch-per-device"), ("embedding_rnn", "recurrences"), ("resnet51", "resnet50")):
            done = self.gpus("--model", model, "--cluster", "a100x4", "--up-to", 8, "--batch-per-device", 8)
            self.assert_refused(done, words)
        done = self.gpus("--model", "resnet50", "--cluster", "a100x4", "--up-to", 8, "--precision", "f32")
        self.assert_refused(done, "--precision")
        done = self.gpus("--model", "resnet50", "--cluster", "mi250x", "--up-to", 8)
        self.assert_refused(done, "MI250X", "howmany gpus --up-to N --cluster mi250x -- python train.py")


if __name__ == "__main__":
    programs.main()
