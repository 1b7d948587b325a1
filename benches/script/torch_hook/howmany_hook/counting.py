# SPDX-License-Identifier: Apache-2.0
"""Counts the operations of a step on a GPU that is not here (settings.py: HOWMANY_SCRIPT_COUNT)."""

import torch

from howmany_hook import mixed_precision, pretended_cuda, rehearsal
from howmany_hook.counted import Counter
from howmany_hook.memory import StepMemory
from howmany_hook.pretend import Pretended
from howmany_hook.settings import launched


def install(session, settings):
    """From now on the process has that GPU."""
    device = settings.count
    counter = Counter()
    counter.mode = mode = Pretended(device.get("real", False), counter)
    session.count(counter, device)
    session.count_memory(StepMemory(mode.on_gpu))
    grouped = launched() and torch.distributed.is_available()
    pretended_cuda.install(mode, device | {"devices": device["devices"] if grouped else 1}, counter.has_compiled)
    mixed_precision.install(mode, tuple(device["capability"]))
    if grouped:
        from howmany_hook import pretended_group

        world = rehearsal.CostTable.read(settings.rehearse).world if settings.rehearse else settings.world
        pretended_group.install(counter, settings.rank, world)
    mode.__enter__()
