# SPDX-License-Identifier: Apache-2.0
"""Hosts made of network namespaces, connected to a switch by links that can be slowed and cut."""

import os
import pathlib
import shutil
import socket
import subprocess


class NotPermitted(Exception):
    pass


class Hosts:
    """Hosts 0, 1, ... with the addresses 10.77.N.1, .2, ... and different names. `rate`: of the
    link of each host, or of all."""

    def __init__(self, rate=None, count=2, burst="256kb"):
        tag = f"hm{os.getpid() % 100000}"
        self.names = [f"{tag}{chr(ord('a') + i)}" for i in range(count)]
        self.links = [f"v{name}" for name in self.names]
        self.switch = f"{tag}switch"
        subnet = f"10.77.{os.getpid() % 250}"
        self.addresses = [f"{subnet}.{i + 1}" for i in range(count)]
        rates = rate if isinstance(rate, list) else [rate] * count
        self.network = f"{subnet}.0/24"
        if shutil.which("ip") is None:
            raise NotPermitted("ip is not installed (iproute2)")
        try:
            self._ip("netns", "add", self.switch)
            self._ip("-n", self.switch, "link", "add", "bridge", "up", "type", "bridge")
            for name, link, address, rate in zip(self.names, self.links, self.addresses, rates):
                self._ip("netns", "add", name)
                self._ip("link", "add", link, "netns", name, "type", "veth", "peer", "name", link, "netns",
                         self.switch)
                self._ip("-n", self.switch, "link", "set", link, "up", "master", "bridge")
                self._ip("-n", name, "addr", "add", f"{address}/24", "dev", link)
                self._ip("-n", name, "link", "set", link, "up")
                self._ip("-n", name, "link", "set", "lo", "up")
                for end in [name, self.switch] if rate else []:
                    subprocess.run(["ip", "netns", "exec", end, "tc", "qdisc", "add", "dev", link, "root",
                                    "tbf", "rate", rate, "burst", burst, "latency", "50ms"],
                                   check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as problem:
            self.remove()
            raise NotPermitted(problem.stderr.strip()) from None

    def remove(self):
        for name in [*self.names, self.switch]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def cut(self):
        self._ip("-n", self.names[0], "link", "set", self.links[0], "down")

    def command(self, host, *command):
        """Returns `command` in the form that runs it on a host."""
        rename = f'hostname {self.names[host]} && exec "$@"'
        return ["ip", "netns", "exec", self.names[host], "unshare", "--uts", "sh", "-c", rename, "sh",
                *map(str, command)]

    def gloo_commands(self, *command):
        """Returns one command per host, which starts a rank as torchrun's agents do."""
        with socket.socket() as s:
            s.bind(("", 0))
            port = s.getsockname()[1]
        world = len(self.names)
        return [self.command(rank, "env", f"RANK={rank}", f"WORLD_SIZE={world}", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1",
                             f"MASTER_ADDR={self.addresses[0]}", f"MASTER_PORT={port}",
                             f"HOWMANY_IFACE={self.links[rank]}", *command) for rank in range(world)]

    def mpi_command(self, folder, *command):
        """Returns an mpirun command for the first host. It starts its daemon on the second host
        through a script in `folder` that replaces ssh."""
        agent = pathlib.Path(folder) / "agent"
        far = " ".join(self.command(1)[:7] + ["-c"])
        agent.write_text(f'#!/bin/sh\nshift\nexec {far} "hostname {self.names[1]} && $*"\n')
        agent.chmod(0o755)
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return self.command(
            0, "mpirun", *root, "--quiet", "--bind-to", "none", "--host",
            ",".join(f"{address}:1" for address in self.addresses), "-n", 2,
            "--mca", "plm_rsh_agent", agent, "--mca", "btl", "self,tcp",
            "--mca", "btl_tcp_if_include", self.network,
            "--mca", "oob_tcp_if_include", self.network, *command)

    @staticmethod
    def _ip(*arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
