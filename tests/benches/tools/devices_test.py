# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only
"""Tests the output of `howmany devices`, as text and as JSON."""

import json
import os
import re

import programs


def devices(*arguments, **environment):
    return programs.run("howmany-devices", *arguments, **environment)


class Devices(programs.TestCase):
    def test_first_line_answers_how_many(self):
        told = devices("--json").json()["cpu_devices"]
        first = devices().out.splitlines()[0]
        self.assertRegex(first, rf"^{told['default_count']} devices? by default here: cpu:0")
        self.assertEqual(told["default_count"], min(8, told["usable_cores"]))
        self.assertLessEqual(told["default_count"] * told["cores_per_device"], told["usable_cores"])

    def test_cores_follow_the_affinity_mask(self):
        before = os.sched_getaffinity(0)
        core = min(before)
        os.sched_setaffinity(0, {core})
        self.addCleanup(os.sched_setaffinity, 0, before)
        told = devices("--json").json()["cpu_devices"]
        self.assertEqual((told["usable_cores"], told["allowed"]), (1, [core]))
        self.assertEqual([limit["decides"] for limit in told["limits"]].count(True), 1)

    def test_slurm_share_limits_the_cores(self):
        told = devices("--json", SLURM_CPUS_PER_TASK="1").json()["cpu_devices"]
        self.assertEqual(told["usable_cores"], 1)

    def test_openmp_binding_does_not_hide_cores(self):
        plain = devices("--json").json()["cpu_devices"]["allowed"]
        bound = devices("--json", OMP_PROC_BIND="true").json()["cpu_devices"]["allowed"]
        self.assertEqual(bound, plain)

    def test_json_has_every_section(self):
        told = devices("--json").json()
        self.assertEqual(told["schema"], "howmany.devices/1")
        for section in ("cpu", "numa", "caches", "memory", "gpus", "modes", "models", "ranges"):
            self.assertIn(section, told)
        self.assertGreater(told["memory"]["total_bytes"], 0)
        self.assertLessEqual({"single", "ddp"}, {mode["name"] for mode in told["modes"]})

    def test_what_is_built_was_tried_and_works(self):
        backends = devices("--json").json()["backends"]
        parts = backends["kernels"] + backends["comms"]
        for part in parts:
            if part["name"] not in ("nccl", "cuda"):  # these need GPUs
                self.assertEqual(part["usable"], part["built"], part)
            if not part["built"]:
                self.assertIn("not built", part["why"])
        self.assertLessEqual({"reference", "onednn", "local", "gloo"},
                             {part["name"] for part in parts})

    def test_mpi_tells_what_it_can_do(self):
        mpi, = [p for p in devices("--json").json()["backends"]["comms"] if p["name"] == "mpi"]
        if not mpi["built"]:
            self.skipTest(mpi["why"])
        self.assertLessEqual({"version", "thread_level", "progress", "cuda_aware"}, set(mpi["details"]))
        self.assertIn("thread level: multiple asked for, ", mpi["why"])
        self.assertIn("thread level: multiple asked for, ", devices().out)

    def test_gpus_are_read_from_the_driver(self):
        driver = {"LD_LIBRARY_PATH": str(programs.BIN / "fake_driver")}
        found = devices("--json", **driver).json()
        self.assertEqual(found["driver"], "550.54.15")
        first, second = found["gpus"]
        for place in ("near_cores", "numa_node"):  # this machine may have a device at that address
            first.pop(place, None)
        self.assertEqual(first, {"index": 0, "vendor": "nvidia", "name": "Test GPU 80GB", "uuid": "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6",
                                 "memory_bytes": 80 * 10**9, "memory_free_bytes": 79 * 10**9,
                                 "pci_bus": "00000000:1B:00.0", "pcie_generation": 5, "pcie_width": 16,
                                 "mig": False})
        self.assertEqual(second, {"index": 1, "vendor": "nvidia", "name": "Test GPU MIG", "uuid": "GPU-8ff00a11-4106-4b1a-9d02-55e07c31aa01",
                                  "pcie_generation": 5, "mig": True})
        self.assertEqual(found["gpu_links"], [{"from": 0, "to": 1, "link": "SYS"}])
        text = devices(**driver)
        self.assertEqual(text.code, 0, text)
        self.assertIn("0: Test GPU 80GB, 80.0 GB, PCIe 5 x16 at 00000000:1B:00.0", text.out)
        self.assertIn("models use CPU cores", text.out)

    def test_links_between_gpus_are_told_as_nvidia_smi_does(self):
        driver = {"LD_LIBRARY_PATH": str(programs.BIN / "fake_driver"), "HM_TEST_NVML": "nvlinks"}
        self.assertEqual(devices("--json", **driver).json()["gpu_links"], [{"from": 0, "to": 1, "link": "NV4"}])
        self.assertRegex(devices(**driver).out, r" NV4 +0-1\n")

    def test_gpus_are_those_that_cuda_shows_in_its_order(self):
        driver = {"LD_LIBRARY_PATH": str(programs.BIN / "fake_driver")}
        found = devices("--json", CUDA_VISIBLE_DEVICES="GPU-8ff", **driver).json()
        self.assertEqual([(gpu["index"], gpu["name"]) for gpu in found["gpus"]], [(0, "Test GPU MIG")])
        self.assertEqual((found["gpus_hidden"], found["gpu_links"]), (1, []))
        text = devices(CUDA_VISIBLE_DEVICES="", **driver).out
        self.assertIn("none: all are hidden by CUDA_VISIBLE_DEVICES", text)

    def test_broken_driver_is_named(self):
        found = devices("--json", LD_LIBRARY_PATH=str(programs.BIN / "fake_driver"),
                        HM_TEST_NVML="broken").json()
        self.assertEqual(found["gpus"], [])
        self.assertIn("Driver Not Loaded", found["gpus_because"])

    def computed(self, **asked):
        file = self.folder / "asked.json"
        file.write_text(json.dumps(asked))
        return programs.run("howmany-devices", "--computed", file)

    def test_the_work_of_a_model(self):
        work = self.computed(model="resnet50").json()
        self.assertAlmostEqual(work["forward_flop"] / 1e9, 2 * 4.1, delta=0.2)
        for model, kind in (("resnet50", "convolutions"), ("vit_b_16", "products"), ("vgg16", "convolutions"),
                            ("embedding_rnn", "recurrences"), ("mlp", "products")):
            self.assertEqual(self.computed(model=model).json()["work"], kind)
        self.assert_refused(self.computed(model="resnet51"), "resnet50")

    def test_computed_steps(self):
        points = [[1024, 0], [1 << 30, 1]]
        table = {kind: points for kind in ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "send", "send_between")}
        step = {"mode": "ddp", "batch_per_device": 4, "table": {"world": 2} | table}
        wider = {"mode": "ddp:accumulate=2", "batch_per_device": 8, "table": {"world": 8} | table}
        asked = {"model": "mlp", "precision": "f32", "samples": 4, "seconds": 2, "fixed_seconds": [0.5, 0, 1],
                 "steps": [step, wider]}
        steps = self.computed(**asked).json()["steps"]
        self.assertEqual([step["devices"] for step in steps], [2, 8])
        for found, least in zip(steps, (2, 4)):  # two micro-batches of 4
            self.assertEqual(len(found["s"]), 3)
            for seconds in found["s"]:
                self.assertGreater(seconds, 0.99 * least)
        for key, value, words in (("model", "mpl", "mlp"), ("precision", "f31", "f32"), ("samples", 0, "samples"),
                                  ("seconds", 0, "seconds"), ("seconds", None, "seconds"), ("fixed_seconds", [3], "fixed_seconds"),
                                  ("fixed_seconds", [-1], "fixed_seconds"), ("steps", 3, "steps"),
                                  ("steps", [step | {"mode": "dpd"}], "ddp"),
                                  ("steps", [step | {"batch_per_device": 0}], "batch_per_device"),
                                  ("steps", [step | {"table": {"world": 1} | table}], "world"),
                                  ("steps", [step | {"table": {"world": 4, "core_s": [1]} | table}], "core_s"),
                                  ("steps", [step | {"table": {"world": 4, "flop_per_byte": -1} | table}], "negative"),
                                  ("steps", [step | {"table": {"world": 4, "all_reduce": []}}], "all_reduce"),
                                  ("steps", [step | {"table": {"world": 4, "all_reduce": [[8]]}}], "all_reduce"),
                                  ("steps", [step | {"table": {"world": 4, "all_reduce": [[8, 1], [8, 2]]}}], "ascending")):
            with self.subTest(key=key, value=value):
                self.assert_refused(self.computed(**asked | {key: value}), words)

    def test_engines_need_a_gpu(self):
        self.assert_refused(devices("--engines", CUDA_VISIBLE_DEVICES=""), "no GPU")
        self.assert_refused(devices("--model", "mlp"), "--engines")

    def test_help_has_an_example_and_misuse_exits_2(self):
        helped = devices("--help")
        self.assertEqual(helped.code, 0)
        self.assertRegex(helped.out, re.compile("Examples:.*howmany devices --json", re.S))
        wrong = devices("--jsno")
        self.assertEqual((wrong.code, wrong.out), (2, ""))
        self.assertIn("--jsno", wrong.err)


programs.main()
