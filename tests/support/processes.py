# SPDX-License-Identifier: Apache-2.0
"""Inspects processes through /proc, to find ranks and to check that none is left."""

import ipaddress
import os
import pathlib
import re


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


def catches(pid, signal):
    """True if the process has a handler for the signal, or has ended."""
    try:
        caught, = re.findall(r"SigCgt:\t(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text())
    except (OSError, ValueError):
        return True
    return int(caught, 16) >> (signal - 1) & 1 == 1


def threads(pid):
    try:
        return len(list(pathlib.Path(f"/proc/{pid}/task").iterdir()))
    except OSError:
        return 0


def mapped(pid, prefix):
    """Returns the mapped files with this prefix."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return []
    return sorted({line.split(None, 5)[5] for line in lines if prefix in line})


def listening(pid):
    """Returns (address, port) of the TCP sockets on which the process listens."""
    inodes = set()
    try:
        for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            target = os.readlink(fd)
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    except OSError:
        return []
    return [(address, port) for inode, address, port in tcp_listeners() if inode in inodes]


def tcp_listeners():
    """Returns (inode, address, port) of all listening TCP sockets."""
    found = []
    for name in ("tcp", "tcp6"):
        path = pathlib.Path(f"/proc/net/{name}")
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            fields = line.split()
            if fields[3] != "0A":
                continue
            address, port = fields[1].split(":")
            words = [bytes.fromhex(address[i:i + 8])[::-1] for i in range(0, len(address), 8)]
            ip = ipaddress.ip_address(b"".join(words))
            # Before Python 3.13, is_loopback is false for ::ffff:127.0.0.1.
            found.append((fields[9], getattr(ip, "ipv4_mapped", None) or ip, int(port, 16)))
    return found
