# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 2400
"""Tests that pip installs the wheel if there is only Python, and that howmany works there and with an older C library."""

import importlib.util
import json
import pathlib
import re
import shutil
import tempfile
import unittest
import zipfile

import only_python
import portable
import programs
from packed import ROOT, checked

MAX_BYTES = 40e6
NEWEST = 28  # minor version of glibc
# `import torch` loads what packages registered, as the real one does (torch/__init__.py, _import_device_backends).
TORCH = """import importlib.metadata
found = importlib.metadata.entry_points()
for point in found.get("torch.backends", []) if isinstance(found, dict) else found.select(group="torch.backends"):
    point.load()()
"""


@unittest.skipUnless(importlib.util.find_spec("ensurepip"), "needs Python's ensurepip (python3-venv)")
class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="hm_test_")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.wheel = pathlib.Path(checked(ROOT / "scripts/wheel", portable.build(), cls.folder).split()[-1])
        cls.place = only_python.OnlyPython(cls.folder)
        cls.install()

    @classmethod
    def install(cls):
        cls.install_with(cls.place, only_python.INTERPRETER, cls.wheel)
        cls.package = next(cls.folder.glob("venv/lib/python3*/site-packages/howmany"))

    @staticmethod
    def install_with(place, python, wheel):
        for command in ([python, "-m", "venv", "venv"], ["venv/bin/pip", "install", "--no-index", "--no-deps", wheel]):
            done = place.run(*command)
            assert done.returncode == 0, done.stdout + done.stderr

    def objects(self):
        return [file for folder in ("bin", "lib", "libexec/howmany") for file in self.package.glob(f"{folder}/*")
                # Pip writes __pycache__ next to our .py files. A .zip holds the hook of PyTorch.
                if file.suffix not in (".py", ".zip", ".json") and file.is_file()]

    def run_here(self, *command, code=0):
        done = self.place.run(*command)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_the_tag_names_a_c_library_and_no_python(self):
        self.assertRegex(self.wheel.name, r"^howmany-\d+\.\d+\.\d+-py3-none-manylinux_2_28_x86_64\.whl$")

    def test_no_symbol_is_newer_than_glibc_2_28(self):
        auditwheel = portable.BUILD / "wheel/tools/bin/auditwheel"
        oldest = int(re.search(r'"manylinux_2_(\d+)_', checked(auditwheel, "show", self.wheel))[1])
        needed = set()
        for file in self.objects():
            needed |= {int(minor) for minor in re.findall(rb"\0GLIBC_2\.(\d+)", file.read_bytes())}
        self.assertLessEqual(max(needed), oldest)
        self.assertLessEqual(oldest, NEWEST)

    def test_the_wheel_is_small(self):
        self.assertLessEqual(self.wheel.stat().st_size, MAX_BYTES)

    def test_share_is_installed_at_the_environments_root(self):
        self.assertTrue((self.folder / "venv/share/doc/howmany/LICENSE").is_file())
        self.assertIn("onednn", {path.name for path in (self.folder / "venv/share/doc/howmany/licenses").iterdir()})
        self.assertFalse((self.package / "share").exists())
        self.assertFalse((self.folder / "venv/share/modulefiles").exists())

    def test_no_library_comes_from_elsewhere(self):
        self.assertGreater(len(self.objects()), 12)
        for file in self.objects():
            self.assertEqual(only_python.libraries_outside(self.package, file), {}, file.name)

    def test_no_library_is_packed_twice(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            sums = [item.CRC for item in wheel.infolist() if "/lib/" in item.filename]
        self.assertEqual(len(sums), len(set(sums)))

    def test_the_command_and_the_module_run_the_program(self):
        native = self.run_here(self.package / "bin/howmany", "--help")
        for command in (["howmany"], ["python", "-m", "howmany"]):
            self.assertEqual(self.run_here(*command, "--help").stdout, native.stdout)
            self.assertRegex(self.run_here(*command, "--version").stdout, r"\d+\.\d+\.\d+")

    def test_arguments_and_the_exit_code_pass_unchanged(self):
        native = self.run_here(self.package / "bin/howmany", "gpus", "--devices", "", "a b", "\udcff", code=2)
        done = self.run_here("howmany", "gpus", "--devices", "", "a b", "\udcff", code=2)
        self.assertEqual(done.stderr, native.stderr)

    def test_the_program_keeps_no_signal_ignored(self):
        state = "import os; os.execv = lambda *a: print(open('/proc/self/status').read()); " \
                "from howmany.__main__ import main; main()"
        ignored = re.search(r"SigIgn:\s*(\w+)", self.run_here("python", "-c", state).stdout)[1]
        self.assertEqual(int(ignored, 16), 0)

    def test_it_measures(self):
        self.run_here("howmany", "gpus", "--model", "mlp:sizes=64-64-10", "--devices", "cpu:0,cpu:1", "--rounds", "1",
                      "--time-budget", "2", "--out", "out")
        self.assertIn("answer", json.loads((self.folder / "out/summary.json").read_text()))

    def test_what_pythons_are_made_to_load_brings_no_cpp_library(self):
        library = self.package / "lib/libhowmany_loopback.so"
        needed = only_python.libraries_of(library)
        self.assertEqual({name.split(".")[0] for name in needed} - {"linux-vdso", "ld-linux-x86-64"}, {"libc", "libdl"})
        bound = "import socket; one = socket.socket(); one.bind(('', 0)); print(one.getsockname()[0])"
        again = f"import os, sys; os.environ['LD_PRELOAD'] = {str(library)!r}; os.execv(sys.executable, [sys.executable, '-c', {bound!r}])"
        self.assertEqual(self.run_here("python", "-c", again).stdout, "127.0.0.1\n")

    def test_the_hook_is_registered_and_silent_unless_asked(self):
        (self.package.parent / "torch").mkdir(exist_ok=True)
        (self.package.parent / "torch/__init__.py").write_text(TORCH)
        loaded = "import torch, sys; print('howmany_hook' in sys.modules, 'howmany_hook.settings' in sys.modules)"
        self.assertEqual(self.run_here("python", "-E", "-c", loaded).stdout, "True False\n")
        asked = f"import os; os.environ['HOWMANY_SCRIPT_OUT'] = {str(self.folder / 'hook')!r}; {loaded}"
        self.assertEqual(self.run_here("python", "-E", "-c", asked).stdout, "True True\n")

    def test_an_older_c_library(self):
        old = portable.Bullseye(self.folder / "old")
        self.install_with(old, "python3", shutil.copy(self.wheel, old.folder))
        out, too_few_runs = old.folder, 5
        for command in (["howmany", "--version"],
                        ["howmany", "gpus", "--model", "mlp:sizes=64-64-10", "--devices", "cpu:0,cpu:1", "--oversubscribe", "--rounds", "1",
                         "--time-budget", "2", "--out", out / "gpus"],
                        ["howmany", "backend", "--devices", "cpu:0,cpu:1", "--oversubscribe", "--time-budget", "2", "--out", out / "backend"],
                        ["howmany", "workers", "--data", "synthetic", "--time-budget", "2", "--out", out / "workers"],
                        ["howmany", "report", out / "gpus"], ["howmany", "compare", out / "gpus", out / "gpus"],
                        ["howmany", "selftest", *([] if programs.NIGHTLY else ["--quick"])]):
            code = too_few_runs if "compare" in command else 0
            done = old.run(*command)
            self.assertEqual(done.returncode, code, (command, done.stdout[-2000:], done.stderr[-2000:]))
        rows = json.loads((out / "backend/summary.json").read_text())["answer"]
        self.assertIn("gloo", json.dumps(rows))


if __name__ == "__main__":
    programs.main()
