# SPDX-License-Identifier: Apache-2.0
"""OUT/process.<pid>.json of each process that imports torch under the hook: {"python": path, "uses": ["accelerate"]}.

`uses` names the launchers whose libraries the process has imported. It is known when the process ends.
"""

import os
import sys

from howmany_hook.agreement import write_whole

LAUNCHERS = ("accelerate", "deepspeed", "lightning.fabric", "lightning.pytorch")


def describe(settings):
    path = os.path.join(settings.out, f"process.{os.getpid()}.json")
    write_whole(path, {"python": sys.executable, "uses": [name for name in LAUNCHERS if name in sys.modules]})
