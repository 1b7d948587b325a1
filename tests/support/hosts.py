"""Two hosts made of network namespaces, joined by a link that can be slowed and cut."""

import os
import pathlib
import shutil
import socket
import subprocess


class NotPermitted(Exception):
    pass


class Hosts:
    """Hosts 0 and 1 with the addresses 10.77.N.1 and .2; each has a name of its own."""

    def __init__(self, rate=None):
        tag = f"hm{os.getpid() % 100000}"
        self.names = [f"{tag}a", f"{tag}b"]
        self.links = [f"v{tag}a", f"v{tag}b"]
        subnet = f"10.77.{os.getpid() % 250}"
        self.addresses = [f"{subnet}.1", f"{subnet}.2"]
        self.network = f"{subnet}.0/24"
        if shutil.which("ip") is None:
            raise NotPermitted("ip is not installed (iproute2)")
        try:
            for name in self.names:
                self._ip("netns", "add", name)
            self._ip("link", "add", self.links[0], "netns", self.names[0], "type", "veth", "peer", "name",
                     self.links[1], "netns", self.names[1])
            for name, link, address in zip(self.names, self.links, self.addresses):
                self._ip("-n", name, "addr", "add", f"{address}/24", "dev", link)
                self._ip("-n", name, "link", "set", link, "up")
                self._ip("-n", name, "link", "set", "lo", "up")
                if rate:
                    subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", link, "root",
                                    "tbf", "rate", rate, "burst", "256kb", "latency", "50ms"],
                                   check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as problem:
            self.remove()
            raise NotPermitted(problem.stderr.strip()) from None

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def cut(self):
        self._ip("-n", self.names[0], "link", "set", self.links[0], "down")

    def command(self, host, *command):
        """`command` as it is started on a host."""
        rename = f'hostname {self.names[host]} && exec "$@"'
        return ["ip", "netns", "exec", self.names[host], "unshare", "--uts", "sh", "-c", rename, "sh",
                *map(str, command)]

    def gloo_commands(self, *command):
        """A rank on each host, as torchrun's agents would start it."""
        with socket.socket() as s:
            s.bind(("", 0))
            port = s.getsockname()[1]
        return [self.command(rank, "env", f"RANK={rank}", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1",
                             f"MASTER_ADDR={self.addresses[0]}", f"MASTER_PORT={port}",
                             f"HOWMANY_IFACE={self.links[rank]}", *command) for rank in (0, 1)]

    def mpi_command(self, folder, *command):
        """mpirun on the first host, which starts its daemon on the second as it would by ssh. `folder` is for
        the script that stands in for ssh."""
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
