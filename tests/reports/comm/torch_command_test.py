# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 180
"""Tests `howmany backend --torch`: the Python it finds, its report on a torch that cannot be measured, and the rows it
keeps. torch is a stub that the probe imports, and the rows come from fake_suites.py. tests/benches/comm/torch_test.py runs
the real torch."""
import json
import os
import sys

import programs
from command_test import Suites

WORKS = ("def is_available():\n    return True\n\nis_gloo_available = is_available\n\n"
         "def is_nccl_available():\n    return False\n\nis_mpi_available = is_nccl_available\n")


class Torch(Suites):
    def torch(self, version="9.8.7", distributed=WORKS):
        """The environment in which `import torch` finds this stub."""
        package = self.folder / "packages" / "torch"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"__version__ = {version!r}\n")
        (package / "distributed.py").write_text(distributed)
        return {"PYTHONPATH": os.pathsep.join([str(package.parent), os.environ.get("PYTHONPATH", "")])}

    def measured(self):
        return {m["case"].split("/")[1] for m in self.summary()["measurements"] if m["suite"] == "backend"}

    def assert_only_others(self, done, *words):
        """One line on torch with these words; the other rows are kept."""
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.measured(), {"gloo", "local"})
        lines = [line for line in " ".join(done.out.split()).split("Not measured: ") if line.startswith("torch")]
        self.assertEqual(len(lines), 1, done)
        for word in words:
            self.assertIn(word, lines[0])


class Found(Torch):
    def test_rows_of_torch_join_the_others(self):
        done = self.backend(torch=("--torch", sys.executable), **self.torch())
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.measured(), {"gloo", "local", "torch:gloo"})
        summary = self.summary()
        answer, request = summary["answer"]["backend"], summary["context"]["howmany_request"]
        self.assertEqual(answer["recommended"], "local")
        self.assertIn("torch:gloo", answer["because"])
        self.assertEqual((request["torch"]["python"], request["torch"]["version"]), (sys.executable, "9.8.7"))

    def test_the_active_python_is_found_without_a_value_or_a_flag(self):
        tools = self.folder / "venv" / "bin"
        tools.mkdir(parents=True)
        (tools / "python").symlink_to(sys.executable)
        environment = {**self.torch(), "VIRTUAL_ENV": str(tools.parent)}
        for number, flags in enumerate(((), ("--torch",))):
            self.out = self.folder / f"out{number}"
            done = self.backend(torch=flags, **environment)
            self.assertIn("torch:gloo", self.measured(), done)
            self.assertEqual(self.summary()["context"]["howmany_request"]["torch"]["python"], str(tools / "python"))

    def test_the_filter_leaves_it_out(self):
        environment = self.torch()
        for number, (flags, left) in enumerate(((("--backend", "gloo,torch:gloo"), {"gloo", "torch:gloo"}),
                                                (("--backend", "torch:gloo"), {"torch:gloo"}),
                                                (("--backend", "gloo"), {"gloo"}))):
            self.out = self.folder / f"out{number}"
            done = self.backend(*flags, torch=(), **environment)
            self.assertEqual(self.measured(), left, done)

    def test_ranks_run_on_the_cores_of_their_devices(self):
        log = self.folder / "arguments"
        self.backend("--backend", "torch:gloo", "--rounds", "1", torch=("--torch", sys.executable),
                     FAKE_ARGUMENTS=str(log), **self.torch())
        bench, = [call for call in map(json.loads, log.read_text().splitlines()) if "torch_collectives" in call[0]]
        self.assertEqual(bench[bench.index("--cores") + 1], "0,1,2,3")

    def test_a_file_of_the_current_folder_is_not_torch(self):
        (self.folder / "torch.py").write_text("raise SystemExit('ran')\n")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        done = self.backend(torch=("--torch", sys.executable))
        self.assert_only_others(done, "has no torch")

    def test_rows_that_die_leave_the_others(self):
        done = self.backend(torch=("--torch", sys.executable), how={"torch:gloo": "die"}, **self.torch())
        self.assertEqual(done.code, 3, done)
        self.assertLessEqual({"gloo", "local"}, self.measured())

    def test_wrong_data_is_1(self):
        done = self.backend(torch=("--torch", sys.executable), how={"torch:gloo": "wrong"}, **self.torch())
        self.assertEqual(done.code, 1, done)


class NotMeasured(Torch):
    def test_no_torch(self):
        self.assert_only_others(self.backend(torch=("--torch", sys.executable)), sys.executable, "has no torch")

    def test_no_python(self):
        nowhere = str(self.folder / "nowhere")
        self.assert_only_others(self.backend(torch=("--torch", nowhere)), nowhere)

    def test_no_distributed(self):
        without = self.torch(distributed="def is_available():\n    return False\n")
        self.assert_only_others(self.backend(torch=("--torch", sys.executable), **without), "torch.distributed")

    def test_a_torch_of_another_python(self):
        other = self.torch(distributed="raise ImportError('undefined symbol: PyUnicode_X')\n")
        for number, flags in enumerate((("--torch", sys.executable), ())):
            self.out = self.folder / f"out{number}"
            done = self.backend(torch=flags, **other, VIRTUAL_ENV="")
            if flags:
                self.assert_only_others(done, "cannot import torch", "PyUnicode_X")
            self.assertEqual(self.measured(), {"gloo", "local"}, done)

    def test_nothing_is_said_of_a_python_without_torch_by_default(self):
        done = self.backend(torch=(), PATH=self.path_without_torch(), VIRTUAL_ENV="")
        self.assertEqual(done.code, 0, done)
        self.assertNotIn("torch", done.out)

    def path_without_torch(self):
        tools = self.folder / "without"
        tools.mkdir()
        (tools / "python3").write_text(f"#!/bin/sh\nexec {sys.executable} -I -S \"$@\"\n")
        (tools / "python3").chmod(0o755)
        return str(tools)

    def test_mpi_and_nccl(self):
        done = self.backend("--backend", "gloo,torch:mpi,torch:nccl", torch=("--torch", sys.executable),
                            **self.torch(distributed=WORKS.replace("False", "True")))
        self.assertEqual(self.measured(), {"gloo"}, done)
        words = " ".join(done.out.split())
        self.assertIn("Not measured: torch:mpi", words)
        self.assertIn("Not measured: torch:nccl", words)

    def test_ranks_of_a_launcher(self):
        place = '{"launcher": "mpirun", "rank": 0, "world": 2, "local_rank": 0, "local_world": 2}'
        done = self.howmany("backend", "--torch", sys.executable, "--out", self.out, FAKE_LAUNCH=place, **self.torch())
        self.assert_only_others(done, "mpirun")

    def test_nothing_left_is_refused(self):
        done = self.backend("--backend", "torch:gloo", torch=("--torch", sys.executable))
        self.assert_refused(done, "no backend to measure", "has no torch")
        self.assert_refused(self.backend("--backend", "torch:glooo", torch=()), "torch:gloo")


if __name__ == "__main__":
    programs.main()
