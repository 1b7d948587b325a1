# SPDX-License-Identifier: Apache-2.0
"""Prints as JSON whether this Python has torch.distributed, and its backends. Removes the current folder from the path
first, so that a file there cannot replace torch."""
import sys
sys.path[:] = [folder for folder in sys.path if folder]
import importlib.util
import json
import platform
answer = {"python": platform.python_version(), "torch": "", "backends": [], "found": False, "why": "has no torch"}

def probe():
    answer["found"] = importlib.util.find_spec("torch") is not None
    if not answer["found"]:
        return
    import torch
    answer["torch"] = str(torch.__version__)
    import torch.distributed as dist
    if not dist.is_available():
        answer["why"] = "has a torch without torch.distributed"
        return
    names = ("gloo", "nccl", "mpi")
    answer["backends"] = [name for name in names if getattr(dist, "is_%s_available" % name, bool)()]
    answer["why"] = "" if answer["backends"] else "has a torch.distributed without gloo, nccl and mpi"

try:
    probe()
except Exception as error:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    answer["why"] = "cannot import torch: " + lines[0][:200]
print()
print(json.dumps(answer))
