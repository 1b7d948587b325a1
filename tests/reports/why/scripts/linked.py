# SPDX-License-Identifier: Apache-2.0
"""linked.py RATE N COMMAND: starts N ranks of a script, each with a network of its own; a link of that rate (100mbit)
connects each to a switch. One rank is the command itself."""

import os
import pathlib
import signal
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "support"))

from hosts import Hosts  # noqa: E402


def main(rate, ranks, *command):
    if int(ranks) == 1:
        os.execvp(command[0], command)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    hosts = Hosts(rate=None if rate == "none" else rate, count=int(ranks), burst="32kb")
    started = []
    try:
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        for rank, (name, link) in enumerate(zip(hosts.names, hosts.links)):
            place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks,
                     "MASTER_ADDR": hosts.addresses[0], "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": link}
            started.append(subprocess.Popen(["ip", "netns", "exec", name, *command],
                                            env=os.environ | {key: str(value) for key, value in place.items()}))
        return max(abs(one.wait()) for one in started)
    finally:
        for one in started:
            one.kill()
            one.wait()
        hosts.remove()


sys.exit(main(*sys.argv[1:]))
