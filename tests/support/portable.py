# SPDX-License-Identifier: Apache-2.0
"""What scripts/bundle packs: a build for glibc 2.28 of this tree, and a system of 2021 to try it in."""

import fcntl
import shutil
import subprocess
import unittest

import programs
from packed import ROOT, checked

BUILD = programs.BIN.resolve().parent / "portable"
LIBRARIES = BUILD.parent / "portable-libraries"
NICE = ["nice", "-n", "10"]  # other tests run


def build():
    """Returns the build folder, without GPU kernels. It shares the compiled objects of other builds through ccache."""
    if programs.sanitized():
        raise unittest.SkipTest("an installation needs the runtime of the sanitizer")
    with open(BUILD.parent / "portable.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        checked(*NICE, ROOT / "scripts/portable-libraries", LIBRARIES)
        checked("cmake", "--preset", "bundle", "-B", BUILD, "-DHM_CUDA=OFF", f"-DHM_PORTABLE={LIBRARIES}", cwd=ROOT)
        checked(*NICE, "cmake", "--build", BUILD, "--target", "packed")
    return BUILD


class Bullseye:
    """Debian 11 in `folder`, with glibc 2.31 and Python 3.9. Raises SkipTest if it cannot be made here."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder, self.root = folder, folder / "root"
        if not shutil.which("mmdebstrap") or not shutil.which("bwrap"):
            raise unittest.SkipTest("needs mmdebstrap and bubblewrap")
        mirrors = checked("apt-get", "indextargets", "--format", "$(REPO_URI)").split()
        mirror = next(one for one in mirrors if "security" not in one)
        try:
            checked("mmdebstrap", "--quiet", "--variant=minbase", "--include=python3-venv", "bullseye", self.root, mirror)
        except AssertionError as error:
            raise unittest.SkipTest(str(error)[-600:])
        probe = self.run("true")
        if probe.returncode:
            raise unittest.SkipTest(f"no root folder of its own: {probe.stderr[-300:]}")

    def run(self, *command, timeout=900):
        sandbox = ["bwrap", "--die-with-parent", "--bind", self.root, "/", "--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys", "--tmpfs", "/tmp",
                   "--bind", self.folder, self.folder, "--chdir", self.folder, "--clearenv", "--setenv", "HOME", self.folder,
                   "--setenv", "PATH", f"{self.folder}/venv/bin:/usr/bin:/bin"]
        return subprocess.run([str(word) for word in [*sandbox, *command]], capture_output=True, text=True, timeout=timeout, check=False)
