"""Inspects processes through /proc, to find ranks and to check that none is left."""

import os
import pathlib


def _stat(pid):
    """Returns the fields of /proc/<pid>/stat from the state on, or None if the process has
    exited."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def alive(pid):
    stat = _stat(pid)
    return stat is not None and stat[0] != "Z"


def cpu_seconds(pid):
    """Returns the CPU seconds of a process without its children, or 0 if it has exited."""
    stat = _stat(pid)
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK") if stat else 0.0


def below(pid):
    """Returns all descendants of `pid`."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _stat(entry.name)):
            children.setdefault(int(stat[1]), []).append(int(entry.name))
    found, left = [], [pid]
    while left:
        more = children.get(left.pop(), [])
        found += more
        left += more
    return found


def ranks_below(pid, program=""):
    """Returns the descendants that are ranks of a launch (of this program, if given), by rank."""
    found = {}
    for child in below(pid):
        try:
            if program not in pathlib.Path(f"/proc/{child}/comm").read_text():
                continue
            environment = pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        found.update({int(e[5:]): child for e in environment if e.startswith(b"RANK=")})
    return found


def threads(pid):
    try:
        return len(list(pathlib.Path(f"/proc/{pid}/task").iterdir()))
    except OSError:
        return 0
