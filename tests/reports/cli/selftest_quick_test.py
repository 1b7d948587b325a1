# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only
# timeout: 180
"""Tests `howmany selftest --quick`: every program of an installation passes, and a bad or missing
one fails."""
import os

import programs

PROGRAMS = {"howmany-train", "howmany-memory", "backend_bench", "transfer_bench", "loader_bench", "core_bench",
            "script_bench", "speedup_bench"}


class Quick(programs.TestCase):
    def quick(self, **environment):
        return programs.run("howmany", "selftest", "--quick", "--json", "--quiet", timeout=150, **environment)

    def folder_with(self, name, text):
        """A folder of the programs in which the text, a shell script, replaces one."""
        for program in PROGRAMS | {"howmany-devices"}:
            (self.folder / program).symlink_to((programs.BIN / program).resolve())
        (self.folder / name).unlink()
        if text:
            (self.folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (self.folder / name).chmod(0o755)
        return {"HOWMANY_BENCH_DIR": str(self.folder)}

    def test_every_program_passes_and_writes_nothing_here(self):
        temporary = self.folder / "tmp"
        temporary.mkdir()
        done = self.quick(TMPDIR=str(temporary))
        self.assertEqual(done.code, 0, done)
        suites = done.json()["suites"]
        self.assertEqual({suite["program"] for suite in suites}, PROGRAMS)
        self.assertEqual([suite["passed"] for suite in suites], [1] * len(suites))
        self.assertEqual(os.listdir(temporary), [])

    def test_other_losses_fail(self):
        train = (programs.BIN / "howmany-train").resolve()
        script = f'case "$*" in *gloo*) echo "Epoch 1, Loss: 9";; *) exec {train} "$@";; esac'
        done = self.quick(**self.folder_with("howmany-train", script))
        self.assertEqual(done.code, 1, done)
        failed = [suite for suite in done.json()["suites"] if suite["failed"]]
        self.assertEqual([suite["program"] for suite in failed], ["howmany-train"])
        self.assertIn("gloo", failed[0]["claim"])

    def test_wrong_data_fail_and_a_missing_program_is_trouble(self):
        environment = self.folder_with("transfer_bench", "exit 1")
        (self.folder / "loader_bench").unlink()
        done = self.quick(**environment)
        self.assertEqual(done.code, 3, done)
        suites = done.json()["suites"]
        self.assertEqual({suite["program"] for suite in suites if suite["failed"]}, {"transfer_bench"})
        self.assertEqual({suite["program"] for suite in suites if suite["trouble"]}, {"loader_bench"})


if __name__ == "__main__":
    programs.main()
