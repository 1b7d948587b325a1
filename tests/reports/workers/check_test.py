# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 180
"""Tests the script that checks the advice with PyTorch: it is valid Python for any folder name."""
import ast
import glob
import importlib.util
import json
import os
import subprocess
import sys
import tarfile
import unittest

import images
import programs
from fake_workers import FakeLoader


class Check(FakeLoader):
    def emit(self, data, *more):
        script = self.folder / "check.py"
        done = self.workers("--data", data, "--emit-check", script, *more)
        self.assertEqual(done.code, 0, done)
        self.assertIn(f"python3 {script}", done.err)
        return script.read_text()

    def constants(self, text):
        return {target.id: ast.literal_eval(node.value) for node in ast.parse(text).body
                if isinstance(node, ast.Assign) for target in node.targets
                if isinstance(target, ast.Name) and target.id in ("DATA", "RATES")}

    def test_runs_the_advice_and_its_neighbours_on_the_same_folder(self):
        data = self.folder / 'a "b" \\ c\n@RATES@ é'
        data.mkdir()
        told = self.constants(self.emit(data, "--samples-per-second", "900"))
        self.assertEqual(told["DATA"], str(data))
        self.assertEqual(sorted(told["RATES"]), [1, 2, 3])
        self.assertEqual(told["RATES"][2], 1000)

    def listing(self):
        """files_of and bytes_of of the script, which need no torch."""
        wanted = [node for node in ast.parse(self.emit(self.folder)).body
                  if isinstance(node, ast.FunctionDef) and node.name in ("named_as_image", "files_of", "bytes_of")]
        names = {"glob": glob, "os": os, "tarfile": tarfile}
        exec(compile(ast.Module(wanted, []), "check.py", "exec"), names)
        return names

    def test_finds_the_images_of_class_folders_and_of_tar_shards(self):
        listing, data = self.listing(), self.folder / "da*ta"
        (data / "cat").mkdir(parents=True)
        for name, content in (("cat/b.PNG", b"two"), ("cat/a.jpg", b"one"), ("cat/notes.txt", b"no"), ("c.jpg", b"no")):
            (data / name).write_bytes(content)
        read = [listing["bytes_of"](file) for file in listing["files_of"](str(data))]
        self.assertEqual(read, [b"one", b"two"])
        with tarfile.open(data / "x.tar", "w") as tar:
            for name in ("cat/a.jpg", "cat/notes.txt", "cat/b.PNG"):
                tar.add(data / name, name)
        for path in (data, data / "x.tar"):
            read = [listing["bytes_of"](file) for file in listing["files_of"](str(path))]
            self.assertEqual(read, [b"one", b"two"])

    def test_tables_and_arrays_cannot_be_checked(self):
        (self.folder / "x.npy").write_bytes(b"")
        for data in (self.folder / "x.csv", self.folder):
            self.assert_refused(self.workers("--emit-check", self.folder / "x.py", "--data", data), "tar shards")
        self.assertEqual(self.started(), [])

    def test_painted_images_cannot_be_checked(self):
        self.assert_refused(self.workers("--emit-check", self.folder / "x.py"), "--data DIR")
        self.assertEqual(self.started(), [])

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
    def test_runs(self):
        data = images.write_folder(self.folder / "data")
        self.emit(data, "--batch-per-device", "4", "--image-size", "16")
        done = subprocess.run([sys.executable, self.folder / "check.py", "--json", "--seconds", "0.1"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(json.loads(done.stdout)["rows"])


if __name__ == "__main__":
    programs.main()
