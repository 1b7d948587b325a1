# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 600
"""Tests scripts/check-gpu over fake GPUs: the steps that run, those that are left out, and the archive."""
import os
import pathlib
import signal
import subprocess
import tarfile
import time

import programs

CHECK = pathlib.Path(__file__).resolve().parents[3] / "scripts" / "check-gpu"
FAKES = programs.BIN.resolve()


class CheckGpu(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out"
        self.bundle = self.folder / "bundle"
        for name in ("bin", "libexec/howmany", "path"):
            (self.bundle / name).mkdir(parents=True)
        for program in (FAKES / "on_fake_gpus").iterdir():
            (self.bundle / "bin" / program.name).symlink_to(program)
        (self.bundle / "bin" / "howmany").symlink_to(FAKES / "howmany")
        for name in ("core", "core_cuda", "core_cudnn", "core_cupti", "parallel"):
            if (FAKES / f"{name}_on_fake_gpus").exists():
                (self.bundle / "libexec/howmany" / f"{name}_tests").symlink_to(FAKES / f"{name}_on_fake_gpus")
        self.program("nvidia-smi", "echo 'GPU 0: fake'")
        self.environment = {**os.environ, "HOWMANY_BENCH_DIR": str(FAKES / "on_fake_gpus"),
                            "PATH": f"{self.bundle / 'path'}:{os.environ['PATH']}",
                            "LD_LIBRARY_PATH": f"{FAKES / 'fake_cuda'}:{FAKES / 'fake_driver'}"}

    def program(self, name, text):
        path = self.bundle / "path" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def start(self, *arguments):
        return subprocess.Popen([CHECK, self.out, "--bin", self.bundle / "bin", *map(str, arguments)], text=True,
                                env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def check(self, *arguments):
        process = self.start(*arguments)
        out, _ = process.communicate(timeout=500)
        return process.returncode, out

    def kept(self):
        with tarfile.open(f"{self.out}.tar.gz") as archive:
            return {pathlib.Path(name).name for name in archive.getnames()}

    def test_facts_name_the_gpus_and_are_kept(self):
        code, out = self.check("--only", "facts")
        self.assertEqual(code, 0, out)
        self.assertIn("fake GPU", out)
        self.assertLessEqual({"facts.log", "devices.json", "nvidia-smi.txt"}, self.kept())

    def test_first_steps_of_small_models(self):
        code, out = self.check("--small", "--only", "facts", "--only", "verify")
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"(?m)^verify +passed")

    def test_what_does_not_fit_is_left_out_and_named_with_how_to_go_on(self):
        code, out = self.check("--deadline", 30, "--skip", "memory,transfer")
        self.assertEqual(code, 0, out)
        last = out.splitlines()[-1]
        self.assertRegex(last, "^left out: engines tests verify kernels-bf16 graph ")
        self.assertTrue(last.endswith("--skip memory,transfer,facts"), last)
        self.assertNotIn("memory", last.split(";")[0])

    def test_a_failed_step_is_1_and_the_next_ones_run(self):
        for name in ("howmany-train", "transfer_bench"):
            (self.bundle / "bin" / name).unlink()
        self.environment["HOWMANY_BENCH_DIR"] = str(self.bundle / "bin")
        code, out = self.check("--only", "memory", "--only", "facts")
        self.assertEqual(code, 1, out)
        self.assertRegex(out, r"(?m)^facts +passed")
        self.assertRegex(out, r"(?m)^memory +FAILED")

    def test_a_failed_test_runs_again_under_the_sanitizer(self):
        tests = self.bundle / "libexec/howmany"
        for path in list(tests.iterdir()):
            path.unlink()
        for name in ("core", "core_cuda", "core_cudnn", "core_cupti", "parallel"):
            path = tests / f"{name}_tests"
            path.write_text("#!/bin/sh\necho '[  FAILED  ] Suite.Name (3 ms)'\nexit 1\n")
            path.chmod(0o755)
        self.program("compute-sanitizer", f'echo "$@" >>{self.folder}/asked; echo "ERROR SUMMARY: 0 errors"')
        code, out = self.check("--only", "tests", "--only", "facts")
        self.assertEqual(code, 1, out)
        asked = (self.folder / "asked").read_text().splitlines()
        self.assertEqual([line.split()[1] for line in asked], ["memcheck", "racecheck", "initcheck"])  # once
        for line in asked:
            self.assertIn("core_tests --gtest_filter=Suite.Name", line)
        self.assertIn("ERROR SUMMARY", (self.out / "tests.log").read_text())

    def test_counters_of_a_kernel(self):
        self.program("ncu", 'echo "    DRAM Throughput   %   61.5"')
        code, out = self.check("--only", "counters", "--only", "facts")
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"(?m)^counters +passed .*61\.5")
        self.program("ncu", 'echo "==ERROR== ERR_NVGPUCTRPERM - no permission"; exit 1')
        code, out = self.check("--only", "counters", "--only", "facts")
        self.assertEqual((code, "skipped: ==ERROR== ERR_NVGPUCTRPERM" in out), (0, True), out)

    def test_a_gpu_that_cannot_be_used_ends_it_at_once(self):
        self.environment["HOWMANY_BENCH_DIR"] = str(self.bundle / "bin")
        devices = self.bundle / "bin" / "howmany-devices"
        devices.unlink()
        devices.write_text("#!/bin/sh\necho '{\"gpus\": [], \"backends\": {\"kernels\": "
                           "[{\"name\": \"cuda\", \"usable\": false, \"why\": \"no driver\"}]}}'\n")
        devices.chmod(0o755)
        code, out = self.check()
        self.assertEqual(code, 1, out)
        self.assertRegex(out, r"^facts +FAILED .*no driver\n$")

    def test_results_are_whole_after_sigterm(self):
        self.program("free", "sleep 100")  # of the step `facts`
        process = self.start("--only", "facts")
        deadline = time.monotonic() + 60
        while not (self.out / "nvidia-smi.txt").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143)
        self.assertIn("facts.log", self.kept())

    def test_without_a_gpu_it_says_so_and_exits_0(self):
        self.program("nvidia-smi", "exit 9")
        code, out = self.check()
        self.assertEqual((code, out.startswith("SKIPPED")), (0, True), out)

    def test_bad_usage_is_2(self):
        for arguments in (["--deadline", "soon"], ["--nonsense"]):
            self.assertEqual(self.check(*arguments)[0], 2, arguments)


if __name__ == "__main__":
    programs.main()
