# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 120
"""`howmany memory`: what fits, estimated without running anything."""
import programs

GPT2 = ("--model", "gpt2:width=1024,layers=24,heads=16,length=1024,vocabulary=50257", "--optimizer", "adamw")


class Memory(programs.TestCase):
    def memory(self, *arguments):
        return programs.run("howmany", "memory", *arguments)

    def rows(self, *arguments):
        done = self.memory(*arguments, "--json")
        self.assertEqual(done.code, 0, done)
        return done.json()["rows"]

    def test_answers_first_and_then_the_table(self):
        done = self.memory(*GPT2, "--batch-per-device", "1", "--device-memory", "16GB")
        self.assertEqual(done.code, 0, done)
        lines = done.out.splitlines()
        self.assertIn(" fits devices of 16 GB with single on 1 device: ", " ".join(done.out.split()))
        header = next(line for line in lines if line.startswith("devices  mode"))
        self.assertTrue(header.endswith("fits  largest batch"))

    def test_more_devices_fit_where_one_does_not(self):
        rows = self.rows(*GPT2, "--batch-per-device", "1", "--device-memory", "8GB")
        fits = {(row["mode"], row["devices"]): row["fits"] for row in rows}
        self.assertFalse(fits["single", 1])
        self.assertFalse(fits["ddp", 8])
        self.assertTrue(fits["sharded", 8])
        answer = self.memory(*GPT2, "--batch-per-device", "1", "--device-memory", "8GB", "--json").json()
        first = next(row for row in rows if row["fits"])
        self.assertIn(f'{first["mode"]} on {first["devices"]} device', answer["because"])
        self.assertEqual(answer["evidence"], "predicted")

    def test_says_what_would_fit_if_nothing_does(self):
        rows = self.rows(*GPT2, "--batch-per-device", "64", "--device-memory", "24GB")
        self.assertFalse(any(row["fits"] for row in rows))
        self.assertTrue(all(0 < row["largest_batch_per_device"] < 64 for row in rows))
        least = min(rows, key=lambda row: row["peak_bytes"])
        answer = self.memory(*GPT2, "--batch-per-device", "64", "--device-memory", "24GB", "--json").json()
        self.assertIn(f'{least["mode"]} on {least["devices"]} device', answer["because"])
        other = answer["fits_with"]
        start, micro_batches = other["mode"].split(":accumulate=")
        self.assertEqual(start, least["mode"])
        fewer = f"{start}:accumulate={int(micro_batches) - 1}"
        row, = self.rows(*GPT2, "--batch-per-device", "64", "--mode", fewer, "--device-count", other["devices"],
                         "--device-memory", "24GB")
        self.assertFalse(row["fits"])
        self.assertLess(other["peak_bytes"], 0.9 * 24e9)
        same, = self.rows(*GPT2, "--batch-per-device", "64", "--mode", other["mode"], "--device-count", other["devices"])
        self.assertEqual(same["peak_bytes"], other["peak_bytes"])
        none = self.memory(*GPT2, "--device-memory", "1M", "--json").json()
        self.assertIn("Not even one sample fits", none["because"])
        self.assertNotIn("fits_with", none)

    def test_two_micro_batches_do_if_they_fit(self):
        answer = self.memory("--model", "resnet50", "--batch-per-device", 1024, "--device-memory", "80GB", "--device-count", 1,
                             "--mode", "single", "--json").json()
        self.assertEqual(answer["fits_with"]["mode"], "single:accumulate=2")

    def test_units_of_the_device_memory(self):
        def bytes_of(text):
            return self.memory("--model", "mlp", "--mode", "single", "--device-memory", text, "--json").json()["device_memory"]

        for text in ("24GB", "24gb", "24 GB", "24Gb"):
            self.assertEqual(bytes_of(text), 24 * 10**9)
        for text in ("24GiB", "24gib", "24 GiB", "24G", "24g", str(24 * 2**30), f"{24 * 2**30}B"):
            self.assertEqual(bytes_of(text), 24 * 2**30)
        self.assert_refused(self.memory("--model", "mlp", "--device-memory", "24"), "24GB", "24GiB")

    def test_eager_attention_keeps_its_scores(self):
        # Probabilities, their dropout and its mask: 9 bytes for each pair of tokens, head and layer.
        arguments = ("--model", "bert_base:length=256", "--batch-per-device", "8", "--mode", "single")
        (flash,), (eager,) = self.rows(*arguments), self.rows(*arguments, "--attention", "eager")
        kept = 9 * 8 * 12 * 12 * 256 * 256
        self.assertGreater(eager["step_bytes"] - flash["step_bytes"], 0.95 * kept)
        self.assertLess(eager["step_bytes"] - flash["step_bytes"], 1.25 * kept)
        self.assertIn("--attention eager", self.memory(*arguments).out)
        self.assertNotIn("attention", self.memory("--model", "resnet18", "--mode", "single").out)
        recompute = (*arguments[:-1], "single:recompute=1")
        (flash,), (eager,) = (self.rows(*recompute, "--attention", how) for how in ("flash", "eager"))
        self.assertLess(eager["step_bytes"] - flash["step_bytes"], 0.3 * kept)

    def test_sizes_and_spellings(self):
        def model_bytes(model):
            return self.rows("--model", model, "--mode", "single", "--batch-per-device", "1")[0]["model_bytes"]

        # Twice the parameters of the published models, in f32.
        for model, parameters in (("llama:size=7b", 6_738_415_616), ("llama-8b", 8_030_261_248), ("mistral", 7_241_732_096),
                                  ("llama_3b", 3_212_749_824), ("resnet101", 44_549_160), ("resnet-152", 60_192_808),
                                  ("vit_l_16", 304_326_632), ("gpt2-xl", 1_557_611_200), ("vgg16_bn", 138_365_992)):
            with self.subTest(model):
                self.assertAlmostEqual(model_bytes(model) / parameters / 8, 1, delta=0.004)
        self.assertEqual(model_bytes("gpt2_large"), model_bytes("gpt2:size=large"))

    def test_parts_add_up(self):
        for row in self.rows("--model", "resnet50", "--mode", "all", "--device-count", "1,2,4", "--batch-per-device", "4"):
            if "why" not in row:
                self.assertEqual(row["model_bytes"] + row["optimizer_bytes"] + row["step_bytes"], row["peak_bytes"])
                self.assertNotIn("fits", row)

    def test_what_cannot_run_has_no_figures(self):
        done = self.memory("--model", "simple_net", "--mode", "ddp,pipeline", "--device-count", "2")
        self.assertEqual(done.code, 0, done)
        self.assertIn("pipeline on 2 devices: [pipeline] simple_net has 1 layers", done.out)
        only = self.memory("--model", "simple_net", "--mode", "pipeline", "--device-count", "2")
        self.assertTrue(only.out.startswith("No answer for simple_net"), only)

    def test_kernels_of_cpus_keep_more(self):
        arguments = ("--model", "resnet18:image=64", "--mode", "single", "--batch-per-device", "8")
        (of_gpus,), (of_cpus,) = self.rows(*arguments), self.rows(*arguments, "--kernels", "onednn")
        self.assertGreater(of_cpus["step_bytes"], 1.3 * of_gpus["step_bytes"])
        self.assertEqual(of_cpus["model_bytes"], of_gpus["model_bytes"])
        self.assertIn("onednn kernels", self.memory(*arguments, "--kernels", "onednn").out)

    def test_strong_scaling_divides_the_batch(self):
        rows = self.rows("--model", "resnet18", "--mode", "ddp", "--global-batch", "64", "--device-count", "2,4,8")
        self.assertEqual([row["batch_per_device"] for row in rows], [32, 16, 8])
        peaks = [row["peak_bytes"] for row in rows]
        self.assertEqual(peaks, sorted(peaks, reverse=True))

    def test_bad_input(self):
        for words, arguments in (
                (("--device-memory", "0"), ("--device-memory", "0")),
                (("--device-memory", "40GiBs"), ("--device-memory", "40GiBs")),
                (("0",), ("--device-count", "0")),
                (("16385",), ("--device-count", "16385")),
                (("resnet18",), ("--model", "resnet19")),
                (("flash",), ("--attention", "flsh")),
                (("70b",), ("--model", "llama:size=9b")),
                (("101",), ("--model", "resnet50:depth=99")),
                (("sharded",), ("--mode", "shardd")),
                (("level", "4"), ("--mode", "sharded:level=4")),
                (("adamw",), ("--optimizer", "adamv")),
                (("bf16",), ("--precision", "bf17")),
                (("onednn",), ("--kernels", "onedn")),
                (("--cores-per-device", "--kernels"), ("--cores-per-device", "2")),
                (("--cores-per-device", "0"), ("--kernels", "onednn", "--cores-per-device", "0")),
                (("--momentum", "adam"), ("--optimizer", "adam", "--momentum", "0.9"))):
            with self.subTest(arguments):
                self.assert_refused(self.memory(*arguments), *words)


if __name__ == "__main__":
    programs.main()
