# SPDX-License-Identifier: Apache-2.0
"""Binds the process to the cores of its local rank, as howmany binds its own ranks."""

import os


def bind(settings):
    """Threads that other libraries have started already are bound too."""
    if settings.local_rank >= len(settings.cores):
        return
    cores = settings.cores[settings.local_rank]
    for thread in os.listdir("/proc/self/task"):
        try:
            os.sched_setaffinity(int(thread), cores)
        except ProcessLookupError:
            pass
