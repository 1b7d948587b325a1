# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 120
"""Tests that a measurement writes only where docs/ADMINS.md says: the results, and a temporary folder that is empty
again."""
import os
import pathlib
import subprocess

import programs


class Places(programs.TestCase):
    def test_a_measurement_writes_only_results(self):
        home, temporary, here = (self.folder / name for name in ("home", "tmp", "here"))
        for folder in (home, temporary, here):
            folder.mkdir()
        environment = {**os.environ, "HOME": str(home), "TMPDIR": str(temporary)}
        environment = {name: value for name, value in environment.items() if not name.startswith("XDG_")}
        done = subprocess.run([programs.BIN.resolve() / "howmany", "gpus", "--model", "simple_net", "--devices",
                               "cpu:0,cpu:1", "--oversubscribe", "--rounds", "1", "--time-budget", "2"],
                              cwd=here, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        written = {path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file()}
        results = pathlib.Path("here/howmany-out")
        self.assertEqual({path.parts[:2] for path in written}, {results.parts})
        self.assertIn("summary.json", {path.name for path in written})


if __name__ == "__main__":
    programs.main()
