# SPDX-License-Identifier: Apache-2.0
# labels: process
"""Wrong arguments: one line that says what and suggests what was meant, exit code 2, no file made.
"""

import os

import programs

QUICK = ("--case-budget", "0.01", "--max-iterations", "5")
CORES = len(os.sched_getaffinity(0))


class Usage(programs.TestCase):
    def refused_by_all(self, arguments, *words):
        out = self.folder / "out"
        for program in (("speedup_bench",), ("howmany-train",), ("howmany", "gpus", "--out", out)):
            with self.subTest(program=program[0], arguments=arguments):
                self.assert_refused(programs.run(*program, *arguments), *words)
                self.assertFalse(out.exists())

    def test_unknown_names_suggest_the_nearest(self):
        for flag, wrong, meant in (("--model", "resent18", "resnet18"), ("--mode", "dpp", "ddp"),
                                   ("--backend", "locl", "local"),
                                   ("--kernels", "referense", "reference"),
                                   ("--precision", "bf61", "bf16")):
            self.refused_by_all((flag, wrong), wrong, meant)

    def test_precisions_that_cpus_do_not_have(self):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            has_bf16 = "avx512_bf16" in file.read()
        for precision in ("tf32",) if has_bf16 else ("tf32", "bf16"):
            self.refused_by_all(("--devices", "cpu:0", "--precision", precision),
                                f"precision {precision} needs a GPU", "cpu:0")

    def test_unknown_flags_suggest_the_nearest(self):
        self.refused_by_all(("--modle", "mlp"), "--modle", "--model")

    def test_unknown_model_options_are_named(self):
        self.refused_by_all(("--model", "mlp:size=1-2"), "size", "sizes")
        self.refused_by_all(("--model", "mlp:sizes=0-x"), "sizes")

    def test_devices_that_are_none_or_come_twice(self):
        self.refused_by_all(("--devices", "gpu:0"), "gpu:0", "cpu")
        self.refused_by_all(("--devices", "cpu:0,cpu:0"), "cpu:0", "twice")
        self.refused_by_all(("--devices", "cuda:0"), "cuda")

    def test_more_devices_than_cores_need_oversubscribe(self):
        many = ",".join(f"cpu:{i}" for i in range(CORES + 1))
        self.refused_by_all(("--mode", "data_parallel", "--devices", many), "--oversubscribe",
                            str(CORES))

    def test_more_cores_per_device_than_cores(self):
        self.refused_by_all(("--cores-per-device", str(CORES + 1)), str(CORES))

    def test_batch_smaller_than_devices(self):
        devices = ("--mode", "data_parallel", "--devices", "cpu:0,cpu:1", "--oversubscribe")
        for program, batch in ((("speedup_bench",), "--global-batch"),
                               (("howmany-train",), "--global-batch"),
                               (("howmany", "gpus"), "--global-batch")):
            self.assert_refused(programs.run(*program, *devices, batch, "1"), "1", "2 devices")

    def test_a_misspelt_version_is_told(self):
        self.assert_refused(programs.run("howmany", "--verison"), "--version")

    def test_half_a_launch_is_refused(self):
        for program in ("speedup_bench", "howmany-train"):
            self.assert_refused(programs.run(program, RANK="0"), "RANK", "WORLD_SIZE")
            self.assert_refused(programs.run(program, RANK="2", WORLD_SIZE="2",
                                             MASTER_ADDR="localhost", MASTER_PORT="1"), "RANK=2")
            self.assert_refused(programs.run(program, RANK="x", WORLD_SIZE="2"), "'x'")
            self.assert_refused(programs.run(program, OMPI_COMM_WORLD_SIZE="4"), "4", "RANK")

    def test_numbers_out_of_range(self):
        self.refused_by_all(("--cores-per-device", "0"), "cores-per-device")
        self.refused_by_all(("--workers", "-7"), "workers")

    def test_oversubscribed_runs_say_so(self):
        result = programs.run("speedup_bench", "--model", "simple_net", "--mode", "data_parallel",
                              "--devices", ",".join(f"cpu:{i}" for i in range(CORES + 1)),
                              "--oversubscribe", *QUICK)
        self.assertEqual(result.code, 0, result)
        self.assertIn("oversubscribed", result.out)


programs.main()
