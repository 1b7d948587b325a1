"""What the comparisons with PyTorch share: where it is, and saying so."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSIONS = {"torch": "2.13.0", "torchvision": "0.28.0"}
SKIPPED = "SKIPPED: no {}. Give --install, or HOWMANY_TORCH_PYTHON=<python with it>."


def say(text):
    print(text, file=sys.stderr, flush=True)


def torch_python(install, packages=("torch",)):
    """The interpreter that has the packages, or None."""
    given = os.environ.get("HOWMANY_TORCH_PYTHON")
    venv = ROOT / "build" / ".venv-torch"
    python = pathlib.Path(given) if given else venv / "bin" / "python"
    if install and not given:
        wanted = [f"{package}=={VERSIONS[package]}" for package in packages]
        say(f"Installing {' '.join(wanted)} into {venv}")
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    if not python.exists():
        return None
    found = subprocess.run([python, "-c", f"import {', '.join(packages)}"], capture_output=True,
                           check=False)
    return python if found.returncode == 0 else None
