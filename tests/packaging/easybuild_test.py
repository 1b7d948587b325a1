# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only
# timeout: 5400
"""Tests the recipes of EasyBuild with EasyBuild: it installs the archive of the programs, finds
the dependencies of the others, and in the nightly run builds from source with the system's compiler."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import packed
import programs

LMOD = next(pathlib.Path("/usr/share/lmod").glob("*/libexec/lmod"), None)
RECIPES = (f"howmany-{packed.VERSION}.eb", f"howmany-{packed.VERSION}-source.eb",
           f"howmany-{packed.VERSION}-gompi-2024a.eb")


@unittest.skipUnless(LMOD, "needs Lmod")
class EasyBuild(programs.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tools = packed.tools()
        keeper = tempfile.TemporaryDirectory(prefix="hm_test_")
        cls.addClassCleanup(keeper.cleanup)
        cls.release, filled = pathlib.Path(keeper.name) / "release", pathlib.Path(keeper.name) / "filled"
        packed.release(cls.release)
        packed.checked(packed.ROOT / "scripts/recipes", packed.ADDRESS, cls.release, filled)
        cls.recipes = filled / "easybuild"

    def eb(self, *words, sources=None):
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "EB_PYTHON": str(self.tools / "python"),
                       "LMOD_CMD": str(LMOD), "EASYBUILD_MODULES_TOOL": "Lmod", "EASYBUILD_TMPDIR": str(self.folder),
                       "EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES": "1",
                       "EASYBUILD_PREFIX": str(self.folder / "apps"),
                       "EASYBUILD_SOURCEPATH": str(sources or self.release)}
        environment |= {name: value for name, value in os.environ.items()
                        if name.startswith(("CMAKE_CXX_COMPILER_LAUNCHER", "CCACHE_"))}
        return packed.checked(self.tools / "eb", *words, env=environment, cwd=self.folder)

    def loaded(self, name, *command):
        """Runs the command after `module load`."""
        script = 'eval "$("$0" bash load "$1")"; shift; "$@"'
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder),
                       "MODULEPATH": str(self.folder / "apps/modules/all")}
        return subprocess.run(["bash", "-c", script, LMOD, name, *command], env=environment, text=True, check=False,
                              capture_output=True)

    def test_the_recipes_pass_easybuilds_checks_and_name_dependencies_that_exist(self):
        self.assertEqual(sorted(path.name for path in self.recipes.iterdir()), sorted(RECIPES))
        paths = [self.recipes / name for name in RECIPES]
        self.assertEqual(self.eb("--check-contrib", *paths).count("[PASS]"), 2 * len(RECIPES))
        planned = self.eb("--dry-run", "--robot", *paths)
        for module in ("howmany/{}", "howmany/{}-source", "howmany/{}-gompi-2024a", "OpenMPI/", "hwloc/"):
            self.assertIn(f"(module: {module.format(packed.VERSION)}", planned)

    def test_the_archive_is_installed_and_its_module_loads(self):
        self.eb(self.recipes / RECIPES[0])
        done = self.loaded(f"howmany/{packed.VERSION}", "howmany", "--version")
        self.assertIn(packed.VERSION, done.stdout, done.stderr)

    def test_a_changed_archive_is_refused(self):
        (self.folder / packed.PROGRAMS).write_bytes(b"other")
        with self.assertRaisesRegex(AssertionError, "(?i)checksum"):
            self.eb(self.recipes / RECIPES[0], sources=self.folder)

    @programs.nightly
    def test_the_source_builds_with_the_systems_compiler(self):
        self.eb(self.recipes / RECIPES[1])
        done = self.loaded(f"howmany/{packed.VERSION}-source", "howmany", "--version")
        self.assertIn(packed.VERSION, done.stdout, done.stderr)


if __name__ == "__main__":
    programs.main()
