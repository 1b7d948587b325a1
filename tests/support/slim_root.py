# SPDX-License-Identifier: Apache-2.0
"""A root folder with the shell, coreutils, tar and the C and C++ libraries of this Debian, like an image such as debian:bookworm-slim."""
import pathlib
import shutil
import subprocess
import unittest

import packed

PACKAGES = ("base-files", "bash", "dash", "coreutils", "tar", "gzip", "libc6", "libc-bin", "libgcc-s1", "libstdc++6", "libacl1", "libattr1",
            "libgmp10", "libpcre2-8-0", "libselinux1", "libssl3", "libtinfo6")
LINKS = ("bin", "sbin", "lib", "lib64")


def make(folder):
    """Fills the folder, which must not exist."""
    found = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *PACKAGES],
                           capture_output=True, text=True, check=False).stdout
    here = [line.split()[0] for line in found.splitlines() if line.endswith(" installed")]
    if "coreutils" not in here:
        raise unittest.SkipTest("needs the packages of Debian")
    listed = {pathlib.Path(name) for name in packed.checked("dpkg-query", "-L", *here).splitlines()}
    for part in ("tmp", "proc", "dev", "sys", "root", "etc", "opt", "usr/local/bin", *(f"usr/{link}" for link in LINKS)):
        (folder / part).mkdir(parents=True)
    for link in LINKS:
        (folder / link).symlink_to(f"usr/{link}")
    for path in listed:
        if path.is_dir() and not path.is_symlink() or not path.exists() or "doc" in path.parts:
            continue
        copy = folder / str(path)[1:]
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy, follow_symlinks=False)
