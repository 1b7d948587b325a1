# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 60
"""Tests that Environment Modules and Lmod load the module files, as the archive has them."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import programs

FILES = pathlib.Path(os.environ["HOWMANY_SOURCE"]) / "packaging/modulefiles"
MODULES, LMOD = "usr/lib/*/modulecmd.tcl", "usr/share/lmod/*/libexec/lmod"


def unpacked(package, folder):
    """Returns a folder with the files of Debian's package, which conflicts with that of Lmod."""
    for command in (["apt-get", "download", "-qq", package], ["sh", "-c", f"dpkg-deb -x {package}_*.deb ."]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise unittest.SkipTest(f"no {package}: {done.stderr.strip()}")
    return folder


def first(root, pattern):
    return next(pathlib.Path(root).glob(pattern), None)


class ModuleFiles(programs.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="hm_test_")
        cls.addClassCleanup(cls.temporary.cleanup)
        modules = first("/", MODULES) or first(unpacked("environment-modules", cls.temporary.name), MODULES)
        cls.tools = [["/usr/bin/tclsh", modules]]
        if lmod := first("/", LMOD):
            cls.tools.append([lmod])

    def setUp(self):
        super().setUp()
        self.root = self.folder / "a place" / "howmany-1.2.3-linux-x86_64"
        modules = self.root / "share/modulefiles/howmany"
        modules.mkdir(parents=True)
        shutil.copy(FILES / "howmany.lua", modules / "1.2.3.lua")
        shutil.copy(FILES / "howmany.tcl", modules / "1.2.3")
        (self.root / "bin").mkdir()
        program = self.root / "bin/howmany"
        program.write_text("#!/bin/sh\necho loaded\n")
        program.chmod(0o755)

    def module(self, tool, *words, then="true"):
        """Runs the words after `module`, and then the commands, in one shell."""
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "LMOD_SYSTEM_DEFAULT_MODULES": "",
                       "MODULEPATH": str(self.root / "share/modulefiles")}
        script = f'set -e; module() {{ eval "$("$@" bash $words)"; }}; words="{" ".join(words)}"; module "$@"; {then}'
        return subprocess.run(["bash", "-c", script, "bash", *tool], env=environment, text=True,
                              capture_output=True, check=False, timeout=50)

    def test_it_loads_the_programs_of_its_own_folder(self):
        for tool in self.tools:
            for name in ("howmany", "howmany/1.2.3"):
                with self.subTest(tool=tool, name=name):
                    done = self.module(tool, "load", name, then="command -v howmany; howmany")
                    self.assertEqual(done.stdout.splitlines(), [str(self.root / "bin/howmany"), "loaded"], done.stderr)

    def test_unloading_restores_the_path(self):
        for tool in self.tools:
            with self.subTest(tool=tool):
                done = self.module(tool, "load", "howmany",
                                   then='words="unload howmany"; module "$@"; echo "$PATH"')
                self.assertEqual(done.stdout.strip(), "/usr/bin:/bin", done.stderr)

    def test_one_version_is_listed_with_its_purpose(self):
        for tool in self.tools:
            with self.subTest(tool=tool):
                listed = self.module(tool, "-t", "avail")
                self.assertEqual((listed.stdout + listed.stderr).count("howmany/1.2.3"), 1, listed)
                about = self.module(tool, "whatis", "howmany")
                self.assertIn("which backend", about.stdout + about.stderr)


if __name__ == "__main__":
    programs.main()
