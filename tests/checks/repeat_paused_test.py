# SPDX-License-Identifier: Apache-2.0
# labels: process quick
"""scripts/repeat_paused.py repeats a failed test only if the machine paused during it."""
import os
import pathlib
import signal
import subprocess
import sys
import time

import programs

SCRIPT = pathlib.Path(os.environ["HOWMANY_SOURCE"]) / "scripts" / "repeat_paused.py"
CTEST = """#!/bin/sh
# Prints what ctest does. Both tests fail; each passes when it runs again.
case "$*" in
  *-R*) echo "again: $*" >>"$LOG"; echo "1/1 Test #2: slow .......   Passed    0.10 sec"; exit 0 ;;
esac
echo "1/2 Test #1: early ...............***Failed    0.10 sec"
echo started >>"$LOG"
sleep 1
echo "2/2 Test #2: slow ................Subprocess aborted***Exception:   5.00 sec"
exit 8
"""


class RepeatPaused(programs.TestCase):
    def run_tests(self, pause):
        """Stops the script, as a machine does that pauses, once the first test has failed."""
        log = self.folder / "log"
        (self.folder / "ctest").write_text(CTEST)
        (self.folder / "ctest").chmod(0o755)
        process = subprocess.Popen([sys.executable, SCRIPT, "release"], stdout=subprocess.PIPE,
                                   text=True, env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}",
                                                   "LOG": str(log)})
        if pause:
            while not log.exists():
                time.sleep(0.05)
            time.sleep(0.7)
            process.send_signal(signal.SIGSTOP)
            time.sleep(3)
            process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=60)
        return process.returncode, out, log.read_text()

    def test_a_pause_repeats_the_tests_that_it_fell_into(self):
        code, out, log = self.run_tests(pause=True)
        self.assertRegex(out, r"Runs again, because the machine paused for \d+ s during it: slow\n")
        self.assertNotIn("during it: early", out)
        self.assertIn("-R ^(slow)$", log)
        self.assertEqual(code, 8)  # the other failed without a pause

    def test_without_a_pause_nothing_is_repeated(self):
        code, out, log = self.run_tests(pause=False)
        self.assertEqual(code, 8)
        self.assertNotIn("again", out + log)


if __name__ == "__main__":
    programs.main()
