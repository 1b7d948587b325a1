# SPDX-License-Identifier: Apache-2.0
"""OUT/process.<pid>.json of each process that imports torch under the hook: {"python": path, "uses": ["lightning.fabric"]}.

`uses` has lightning.fabric if a Fabric exists, and DistributedDataParallel if the script's file names it or Lightning may use
it. It is known when the process ends.
"""

import os
import sys

from howmany_hook.agreement import write_whole
from howmany_hook.objects import objects_of

FABRIC = "lightning.fabric"  # that Lightning imports for other uses too
LIGHTNING = ("lightning.pytorch", "pytorch_lightning", "lightning_fabric")
GROUP = ("DistributedDataParallel", "init_process_group")


def describe(settings):
    if not os.path.isdir(settings.out):  # on another host
        return
    uses = []
    fabric = getattr(sys.modules.get(FABRIC), "Fabric", None)
    if fabric is not None and objects_of((fabric,)):
        uses.append(FABRIC)
    if any(name in _source() for name in GROUP) or any(name in sys.modules for name in LIGHTNING):
        uses.append(GROUP[0])
    write_whole(os.path.join(settings.out, f"process.{os.getpid()}.json"), {"python": sys.executable, "uses": uses})


def _source():
    """The text of the script; empty if it has no file."""
    try:
        with open(sys.modules["__main__"].__file__, encoding="utf-8") as file:
            return file.read()
    except (AttributeError, OSError, UnicodeDecodeError):
        return ""
