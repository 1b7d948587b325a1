# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only
# timeout: 600
"""Tests that rattler-build makes the conda package, installs it in an environment, and passes its tests. It needs
no channel, because the package has no dependencies."""
import json
import re
import shutil
import subprocess

import packed
import programs

BUILD = """
import json, sys
import rattler_build as rattler
[variant] = rattler.Stage0Recipe.from_file(sys.argv[1]).render()
done = variant.run_build(channels=[], output_dir=sys.argv[2], package_format="conda:-7",
                         tool_config=rattler.ToolConfiguration(test_strategy="native"))
print(json.dumps({"packages": [str(path) for path in done.packages], "version": done.version,
                  "platform": done.platform, "log": done.log}))
"""


class Conda(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.tools = packed.tools()
        packed.release(self.folder / "release")
        there = self.folder / f"howmany/releases/download/v{packed.VERSION}"
        there.mkdir(parents=True)
        shutil.copy(self.folder / "release" / packed.PROGRAMS, there)
        packed.checked(packed.ROOT / "scripts/recipes", f"file://{self.folder}/howmany", self.folder / "release",
                       self.folder)
        self.recipe = self.folder / "conda/recipe.yaml"

    def build(self):
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "TMPDIR": str(self.folder)}
        return subprocess.run([self.tools / "python", "-c", BUILD, self.recipe, self.folder / "channel"], text=True,
                              env=environment, capture_output=True, check=False)

    def test_the_package_is_made_and_passes_its_tests(self):
        done = self.build()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        made = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((made["version"], made["platform"], len(made["packages"])), (packed.VERSION, "linux-64", 1))
        self.assertIn("all tests passed", "".join(made["log"]))

    def test_a_program_that_fails_its_test_makes_no_package(self):
        text = self.recipe.read_text()
        self.assertIn("howmany selftest --quick", text)
        self.recipe.write_text(text.replace("howmany selftest --quick", "howmany selftest --no-such"))
        self.assertNotEqual(self.build().returncode, 0)

    def test_its_c_library_is_that_of_the_wheel(self):
        release = (packed.ROOT / ".github/workflows/release.yml").read_text()
        minor = re.search(r"PLATFORM: manylinux_2_(\d+)_", release)[1]
        self.assertIn(f"- __glibc >=2.{minor}\n", self.recipe.read_text())


if __name__ == "__main__":
    programs.main()
