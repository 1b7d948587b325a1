# SPDX-License-Identifier: Apache-2.0
"""For tests of recipes: the archives of a release, made from this build and tree, and the tools of
tests/packaging/tools.txt."""
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
import zipfile

import programs

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r"^project\(howmany VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
PROGRAMS, SOURCE = f"howmany-{VERSION}-linux-x86_64.tar.gz", f"howmany-{VERSION}.tar.gz"
ADDRESS = "https://host.invalid/someone/howmany"


def checked(*command, **options):
    """Runs the command and returns its output. Raises AssertionError with it if the command fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **options)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}"
    return done.stdout


def pack(folder, name, root):
    """Makes the archive `name` of the folder, with all files below `root`."""
    checked("tar", "-C", folder, "--use-compress-program=gzip -1", f"--transform=s,^[.],{root},", "-cf",
            folder.parent / name, ".")


def release(folder):
    """Makes both archives in the folder. They have the names and the layout of those of scripts/bundle and of
    the release, but the programs of this build, without the full tests."""
    if programs.sanitized():
        raise unittest.SkipTest("an installation needs the runtime of the sanitizer")
    if re.search(r"^MPI +\d", checked(programs.BIN / "howmany", "--version"), re.M):
        raise unittest.SkipTest("an installation with MPI is not that of a release; preset cpu-only tests this")
    folder.mkdir()
    stage = folder / "stage"
    checked("cmake", "--install", programs.BIN.resolve().parent, "--prefix", stage, "--strip")
    shutil.rmtree(stage / "libexec")
    pack(stage, PROGRAMS, PROGRAMS[:-len(".tar.gz")])
    shutil.rmtree(stage)
    names = checked("git", "ls-files", "-co", "--exclude-standard", "-z", cwd=ROOT)
    subprocess.run(["tar", "-C", ROOT, "--null", "-T", "-", f"--transform=s,^,howmany-{VERSION}/,", "-czf",
                    folder / SOURCE], input=names, text=True, check=True)


def thin_wheel(folder):
    """Makes a wheel without libraries, with the program of this build. Returns its path."""
    path, info = folder / f"howmany-{VERSION}-py3-none-any.whl", f"howmany-{VERSION}.dist-info"
    files = {f"howmany/{source.name}": source.read_text()
             for source in sorted((ROOT / "packaging/python/howmany").glob("*.py"))}
    files["howmany/bin/howmany"] = f'#!/bin/sh\nexec "{programs.BIN.resolve()}/howmany" "$@"\n'
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: howmany\nVersion: {VERSION}\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = "[console_scripts]\nhowmany = howmany.__main__:main\n"
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            item = zipfile.ZipInfo(name)
            item.external_attr = 0o100755 << 16
            wheel.writestr(item, text)
    return path


def repository(folder):
    """Makes a git repository of this tree in the folder, with a commit and the tag of the version."""
    folder.mkdir()
    names = checked("git", "ls-files", "-co", "--exclude-standard", "-z", cwd=ROOT)
    subprocess.run(f"tar -C {ROOT} --null -T - -c | tar -xC {folder}", shell=True, input=names, text=True, check=True)
    for words in (["init", "-q", "-b", "main"], ["add", "."],
                  ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", "tree"], ["tag", f"v{VERSION}"]):
        checked("git", *words, cwd=folder)


def tools(wanted=ROOT / "tests/packaging/tools.txt"):
    """Returns the bin folder of a virtual environment with the packages of a list, kept for the next run. Skips the test
    if they cannot be installed."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "howmany"
    cache.mkdir(parents=True, exist_ok=True)
    venv = cache / wanted.parent.name
    with open(venv.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (venv / "tools.txt").exists() or (venv / "tools.txt").read_text() != wanted.read_text():
            try:
                checked(sys.executable, "-m", "venv", "--clear", venv)
                checked(venv / "bin/pip", "install", "--quiet", "--retries", "10", "-r", wanted)
            except AssertionError as error:
                raise unittest.SkipTest(f"no tools: {str(error)[-300:]}")
            shutil.copy(wanted, venv)
    return venv / "bin"
