# SPDX-License-Identifier: Apache-2.0
"""Binds the process to the cores of its local rank, as howmany binds its own ranks."""

import os

from howmany_hook.settings import launched


def bind(settings):
    """Threads that other libraries have started already are bound too. A process without a launcher may start ranks:
    it gets the cores of all."""
    if settings.local_rank >= len(settings.cores):
        return
    cores = settings.cores[settings.local_rank] if launched() else sum(settings.cores, [])
    _bind_threads(settings, cores)


def take_rank(settings, rank, world):
    """For a rank that the script started itself, once its group is formed."""
    if world in (1, settings.world):
        return
    settings.rank = settings.local_rank = rank
    settings.world = settings.local_world = world
    if rank < len(settings.cores):
        _bind_threads(settings, settings.cores[rank])


def _cores_here(settings, cores):
    """The cores are those of the host of rank 0. On another host the job may have others: returns those at the same
    positions, or none if there are too few."""
    own = sorted(os.sched_getaffinity(0))
    if not settings.spans_hosts or set(cores) <= set(own):
        return cores
    listed = sorted(set(sum(settings.cores, [])))
    positions = [listed.index(core) for core in cores]
    return [own[position] for position in positions] if max(positions) < len(own) else []


def _bind_threads(settings, cores):
    cores = _cores_here(settings, cores)
    if not cores:
        return
    for thread in os.listdir("/proc/self/task"):
        try:
            os.sched_setaffinity(int(thread), cores)
        except ProcessLookupError:
            pass
