# SPDX-License-Identifier: Apache-2.0
"""OUT/process.<pid>.json of each process that imports torch under the hook: {"python": path, "uses": ["accelerate"]}.

`uses` names the launchers whose libraries the process has imported, and DistributedDataParallel if the script's file names
it. It is known when the process ends.
"""

import os
import sys

from howmany_hook.agreement import write_whole

LAUNCHERS = ("accelerate", "deepspeed", "lightning.fabric", "lightning.pytorch")
GROUP = ("DistributedDataParallel", "init_process_group")


def describe(settings):
    uses = [name for name in LAUNCHERS if name in sys.modules]
    if any(name in _source() for name in GROUP):
        uses.append(GROUP[0])
    write_whole(os.path.join(settings.out, f"process.{os.getpid()}.json"), {"python": sys.executable, "uses": uses})


def _source():
    """The text of the script; empty if it has no file."""
    try:
        with open(sys.modules["__main__"].__file__, encoding="utf-8") as file:
            return file.read()
    except (AttributeError, OSError, UnicodeDecodeError):
        return ""
