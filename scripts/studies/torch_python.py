# SPDX-License-Identifier: Apache-2.0
"""Shared by the comparisons with PyTorch: finds its interpreter, and prints messages."""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VERSIONS = {"torch": "2.13.0"}
SKIPPED = "SKIPPED: no {}. Give --install, or HOWMANY_TORCH_PYTHON=<python with it>."


def say(text):
    print(text, file=sys.stderr, flush=True)


def torch_python(install, packages=("torch",)):
    """Returns the interpreter with the packages, or None. Prefers $HOWMANY_TORCH_PYTHON, then
    build/.venv-torch, then this one."""
    given = os.environ.get("HOWMANY_TORCH_PYTHON")
    venv = ROOT / "build" / ".venv-torch"
    own = venv / "bin" / "python"
    if install and not given:
        wanted = [f"{package}=={VERSIONS[package]}" for package in packages]
        say(f"Installing {' '.join(wanted)} into {venv}")
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([own, "-m", "pip", "install", "--quiet", *wanted], check=True)
    has_them = ["-c", f"import {', '.join(packages)}"]
    for python in [given] if given else [own, sys.executable]:
        found = shutil.which(python)
        if found and subprocess.run([found, *has_them], capture_output=True, check=False).returncode == 0:
            return found
    return None
