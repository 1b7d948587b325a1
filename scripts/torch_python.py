"""What the comparisons with PyTorch share: where it is, and saying so."""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSIONS = {"torch": "2.13.0", "torchvision": "0.28.0"}
SKIPPED = "SKIPPED: no {}. Give --install, or HOWMANY_TORCH_PYTHON=<python with it>."


def say(text):
    print(text, file=sys.stderr, flush=True)


def torch_python(install, packages=("torch",)):
    """The interpreter that has the packages, or None: the one given, else one of ours, else this."""
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
