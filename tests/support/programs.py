# SPDX-License-Identifier: Apache-2.0
"""Runs the built programs as a user does. A test script ends with `programs.main()`. If all its
cases were skipped, it exits with 77, which ctest recognizes."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ.get("HOWMANY_BIN", "build/dev/bin"))
# A busy machine makes answers uncertain and rounds repeated. Only the tests that use load.py want that.
os.environ["HOWMANY_PROC"] = str(pathlib.Path(__file__).resolve().parent / "idle_proc")


def sanitized():
    """True if the programs were built with a sanitizer, which reserves terabytes of address space."""
    cache = BIN.parent / "CMakeCache.txt"
    return cache.exists() and any(line.startswith("HM_SANITIZE:") and not line.rstrip().endswith("=")
                                  for line in cache.read_text().splitlines())


# Cases that take long and differ little from others run in .ci/run nightly.
NIGHTLY = "HOWMANY_NIGHTLY" in os.environ
nightly = unittest.skipUnless(NIGHTLY, "only with HOWMANY_NIGHTLY")


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __str__(self):
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"

    def json(self):
        return json.loads(self.out)


def run(program, *arguments, timeout=60, **environment):
    done = subprocess.run([str(BIN / program), *map(str, arguments)], capture_output=True, text=True,
                          errors="replace", timeout=timeout, env={**os.environ, **environment})
    return Result(done.returncode, done.stdout, done.stderr)


def python_that_runs(code):
    """Returns the first of $HOWMANY_TORCH_PYTHON, python3 and python that runs the code without an error, or None."""
    for name in (os.environ.get("HOWMANY_TORCH_PYTHON", ""), "python3", "python"):
        found = name and shutil.which(name)
        if found and subprocess.run([found, "-c", code], capture_output=True, check=False).returncode == 0:
            return found
    return None


def read_bytes(path):
    """Returns the content of the file, or nothing if it is gone."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


class TestCase(unittest.TestCase):
    """Has `self.folder`, an empty folder that is removed after the case."""

    def setUp(self):
        keeper = tempfile.TemporaryDirectory(prefix="hm_test_")
        self.addCleanup(keeper.cleanup)
        self.folder = pathlib.Path(keeper.name)

    def popen(self, *command, **options):
        """Starts a process with text streams. It is killed after the case."""
        process = subprocess.Popen([str(word) for word in command], text=True, **options)
        for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
            self.addCleanup(stream.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_until(self, what, condition, seconds=60):
        """Returns the first true value of condition()."""
        end = time.monotonic() + seconds
        while not (value := condition()):
            self.assertLess(time.monotonic(), end, f"waited for {what}")
            time.sleep(0.002)
        return value

    def assert_refused(self, result, *words, code=2):
        """Asserts that the program printed one line with the given words and exited with this
        code."""
        self.assertEqual(result.code, code, result)
        lines = result.err.strip().splitlines()
        self.assertEqual(len(lines), 1, result)
        for word in words:
            self.assertIn(word, lines[0])


def main():
    done = unittest.main(verbosity=2, exit=False).result
    if not done.wasSuccessful():
        sys.exit(1)
    skipped = sum(isinstance(test, unittest.TestCase) for test, _ in done.skipped)  # others are setUpClass
    sys.exit(77 if done.skipped and skipped == done.testsRun else 0)
