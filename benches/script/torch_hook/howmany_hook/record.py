# SPDX-License-Identifier: Apache-2.0
"""The JSON Lines file of a rank: OUT/rank<r>.<pid>.jsonl. benches/script/record.h reads it.

{"kind": "start", "rank": 0, ...}    when the first step has ended
{"kind": "step", "step": 0, "s": seconds, "wait_s": ..., "samples": ...}    one per step
{"kind": "turn", "workers": 2, "first": a, "last": b, ...}    steps a to b had 2 loader workers
{"kind": "collective", "step": 7, "op": "all_reduce", "bytes": ..., "at_s": since the step began, "s": T, ...}
{"kind": "end", "complete": true, "first": w, "last": k, ...}    steps w to k were timed
{"kind": "failed", "why": "..."}    the hook failed; the script went on

All but the first and the last kind are written together, when the measurement is complete or the script ends.
If the ranks are on several hosts, rank 0 has OUT and writes the files of ranks on the others, which come through the
store of their group (store.py).
A process that an exception ends also writes OUT/raised.<pid>.json: {"at": Unix time, "why": "ValueError: no data"}.
"""

import json
import os
import sys
import time
import traceback

from howmany_hook import store
from howmany_hook.agreement import write_text

FAILED = "failed"  # a file: script_bench then ends the command, because nothing can be measured any more
PATIENCE = 20  # seconds in which rank 0 waits for the records of the others


def _path_of(out, rank, pid):
    return os.path.join(out, f"rank{rank}.{pid}.jsonl")


def _text_of(lines):
    return "".join(json.dumps(line) + "\n" for line in lines)


def _append(path, lines):
    with open(path, "a", encoding="utf-8") as file:
        file.write(_text_of(lines))


class Record:
    def __init__(self, settings, group):
        """`group`: the GroupStore of ranks on several hosts, or None."""
        self._settings, self._group = settings, group
        self._path = _path_of(settings.out, settings.rank, os.getpid())
        self._start = None
        if group and settings.rank == 0:
            group.announce_host()

    def start(self, line):
        self._start = line
        if os.path.isdir(self._settings.out):
            _append(self._path, [line])

    def end(self, lines):
        """Rank 0 then waits for the others, unless an exception ended it."""
        group, first = self._group, self._settings.rank == 0
        is_here = group.has_folder(self._settings.out) if group and not first else os.path.isdir(self._settings.out)
        if is_here:
            _append(self._path, lines)
        if group and first:
            collect(self._settings.out, group, 0 if _raised() else PATIENCE)
        elif group:
            group.deliver("" if is_here else _text_of([self._start, *lines]))


def collect(out, group, seconds):
    """Writes the records of the ranks that have no folder."""
    for rank, pid, text in group.records(seconds):
        write_text(_path_of(out, rank, pid), text)
        if json.loads(text.splitlines()[-1])["kind"] == "failed":
            _append(os.path.join(out, FAILED), [])


def _describe(error):
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    frames = traceback.extract_tb(error.__traceback__)
    if str(error) or not frames:
        return f"{name}: {error}"
    last = frames[-1]  # an assertion without a text
    return f"{name}: {os.path.basename(last.filename)}, line {last.lineno}: {last.line}"


def write_failure(settings, error):
    """Does nothing if the folder cannot be written. On a host without it, the failure goes to rank 0."""
    rank = getattr(settings, "rank", 0)
    out = getattr(settings, "out", None) or os.environ.get("HOWMANY_SCRIPT_OUT")
    lines = [{"kind": "failed", "rank": rank, "why": f"{type(error).__name__}: {error}"}]
    try:
        if out:
            _append(_path_of(out, rank, os.getpid()), lines)
            _append(os.path.join(out, FAILED), [])
    except OSError:
        pass
    group = store.of_group(settings) if settings else None
    if group:
        group.deliver("" if group.has_folder(out) else _text_of(lines))


def write_exception(out):
    """Call at the exit of the interpreter, which keeps the exception that ends it."""
    error = _raised()
    if error and os.path.isdir(out):
        _append(os.path.join(out, f"raised.{os.getpid()}.json"), [{"at": time.time(), "why": _describe(error)}])


def _raised():
    error = getattr(sys, "last_value", None)
    return error if isinstance(error, Exception) else None
