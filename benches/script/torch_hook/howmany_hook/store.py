# SPDX-License-Identifier: Apache-2.0
"""What the ranks of several hosts exchange through the store of their process group. They may have no folder in common,
and a network file system may show a new file seconds late.

howmany/steps             the Steps, from rank 0, see agreement.py
howmany/host              name of the host of rank 0, which has OUT
howmany/record/<r>        {"pid": 7, "parts": 2} when rank r has finished; 0 parts: its record is in OUT
howmany/record/<r>/<part> a part of the record, compressed

Failure. If the store is gone, calls do nothing: the script may have ended, or it has an error of its own to report.
"""

import json
import os
import time
import zlib

import torch

PREFIX = "howmany/"
PART = 1 << 22  # bytes; TCPStore refuses values of more than 8 MiB
POLL = 0.01  # seconds
clock = time.perf_counter


def of_group(settings):
    """Returns None if the ranks are on one host or each trains alone, or if their group has no store, as with MPI."""
    distributed = torch.distributed
    if not settings.spans_hosts or not distributed.is_available() or not distributed.is_initialized():
        return None
    if distributed.get_world_size() == 1:
        return None
    try:
        store = distributed.distributed_c10d._get_default_store()
    except (AttributeError, KeyError, ValueError):
        return None
    return None if store is None else GroupStore(store, settings.rank, distributed.get_world_size())


class GroupStore:
    def __init__(self, store, rank, world):
        self._store, self._rank, self._world = store, rank, world
        self._gone = False

    def announce_host(self):
        self._set("host", os.uname().nodename)

    def announce_steps(self, steps):
        """Returns once the others can see them. Raises if the store is gone: no rank would know the last step."""
        self._store.set(PREFIX + "steps", json.dumps(steps))
        self._store.get(PREFIX + "steps")

    def steps(self):
        """Returns those that rank 0 announced, or None. Takes a round trip."""
        text = self._get("steps")
        return None if text is None else json.loads(text)

    def has_folder(self, out):
        """True if this rank writes to the folder that rank 0 has, and no other host does."""
        host = self._get("host")
        return os.path.isdir(out) and (host is None or host.decode() == os.uname().nodename)

    def deliver(self, text):
        """`text`: the whole record; empty if it is in the folder of rank 0."""
        data = zlib.compress(text.encode(), 1) if text else b""
        parts = [data[at : at + PART] for at in range(0, len(data), PART)]
        key = f"record/{self._rank}"
        for index, part in enumerate(parts):
            self._set(f"{key}/{index}", part)
        self._set(key, json.dumps({"pid": os.getpid(), "parts": len(parts)}))
        self._get(key)  # the process may end now

    def records(self, seconds):
        """Waits for the other ranks, for `seconds` in all. Yields rank, process id and text of the records that are not
        in the folder."""
        end = clock() + seconds
        for rank in range(self._world):
            key = f"record/{rank}"
            if rank == self._rank or not self._wait(key, end):
                continue
            found = json.loads(self._get(key) or "{}")
            parts = [self._get(f"{key}/{index}") for index in range(found.get("parts", 0))]
            if parts and None not in parts:
                yield rank, found["pid"], zlib.decompress(b"".join(parts)).decode()

    def _set(self, key, value):
        self._try(self._store.set, PREFIX + key, value)

    def _get(self, key):
        """Returns None if there is no such key. `get` alone would wait for it."""
        return self._try(self._store.get, PREFIX + key) if self._try(self._store.check, [PREFIX + key]) else None

    def _wait(self, key, end):
        while not self._try(self._store.check, [PREFIX + key]):
            if self._gone or clock() >= end:
                return False
            time.sleep(POLL)
        return True

    def _try(self, call, *arguments):
        if self._gone:
            return None
        try:
            return call(*arguments)
        except RuntimeError:
            self._gone = True
            return None
