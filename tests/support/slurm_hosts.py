# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster of several hosts on this machine. Each host is a network namespace with an address, a name and an
/etc/hosts of its own. All see one file system. This host is the login node and has the controller."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import slurm_cluster
from slurm_cluster import CannotStart

LOGIN = 254  # of the addresses


class Hosts(slurm_cluster.Cluster):
    """Nodes node1, node2, ... `rate`: of the link of each. `cores`: of a job on each; two jobs fit."""

    def __init__(self, count=2, cores=2, rate="1gbit"):
        self.count, self.cores, self.rate = count, cores, rate
        self.tag = f"hs{os.getpid() % 100000}"
        self.names = [f"node{i}" for i in range(1, count + 1)]
        self.slurmd = {}
        super().__init__()

    def stop(self):
        for process in self.slurmd.values():
            process.send_signal(signal.SIGCONT)
        super().stop()
        for name in self.slurmd:
            for pid in self.processes_on(name):
                _kill(pid)
        for i, name in enumerate(self.names):
            _ip("link", "del", self._link(i), check=False)
            _ip("netns", "del", self._namespace(name), check=False)
        _ip("link", "del", self._bridge(), check=False)

    def allocate(self):
        """Returns the environment of a job on all hosts, as salloc gives it to a shell on the login node."""
        variables = self.folder / "variables"
        shell = f"env -0 > {variables}.new && mv {variables}.new {variables} && exec sleep infinity"
        self._daemon("salloc", "salloc", f"--nodes={self.count}", f"--cpus-per-task={self.cores}", "sh", "-c", shell)
        self._wait("job", variables.exists)
        return dict(entry.split("=", 1) for entry in variables.read_text().split("\0") if entry)

    def steps(self):
        """Returns the steps that run, of all jobs."""
        return self.run("squeue", "--steps", "--noheader", "--format=%i").stdout.split()

    def command_on(self, name, *command):
        """Returns `command` in the form that runs it on a host."""
        return ["nsenter", "--target", str(self.slurmd[name].pid), "--net", "--uts", "--mount", *map(str, command)]

    def run_on(self, name, *command):
        subprocess.run(self.command_on(name, *command), check=True, capture_output=True, text=True)

    def hosts_file(self, name):
        """Returns the file that is /etc/hosts on this host. It must be changed in place."""
        return self.folder / f"hosts-{name}"

    def processes_on(self, name):
        """Returns the processes on a host, without slurmd."""
        found = []
        inode = pathlib.Path(f"/run/netns/{self._namespace(name)}").stat().st_ino
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (entry / "ns/net").stat().st_ino == inode and int(entry.name) != self.slurmd[name].pid:
                    found.append(int(entry.name))
            except OSError:  # it has ended
                continue
        return found

    def kill_processes_on(self, name):
        for pid in self.processes_on(name):
            _kill(pid)

    def kill_slurmd(self, name):
        self.slurmd[name].kill()
        self.slurmd[name].wait()
        self.started.remove(self.slurmd[name])

    def start_slurmd(self, name):
        setup = f'mount --bind {self.hosts_file(name)} /etc/hosts && hostname {name} && exec "$@"'
        # Not by `ip netns exec`, which mounts /sys again and so hides the cgroups.
        self.slurmd[name] = self._daemon(
            f"slurmd-{name}", "nsenter", f"--net=/run/netns/{self._namespace(name)}", "unshare", "--uts", "--mount",
            "sh", "-c", setup, "sh", self.programs["slurmd"], "-D", "-N", name)

    def _namespace(self, name):
        return f"{self.tag}{name}"

    def _link(self, index):
        return f"{self.tag}v{index}"

    def _bridge(self):
        return f"{self.tag}br"

    def _start_slurm(self):
        if shutil.which("ip") is None:
            raise CannotStart("ip is not installed (iproute2)")
        try:
            return self._start_hosts()
        except subprocess.CalledProcessError as problem:
            raise CannotStart(problem.stderr.strip()) from None

    def _start_hosts(self):
        subnet = _free_subnet()
        addresses = {name: f"{subnet}.{i}" for i, name in enumerate(self.names, 1)}
        bridge, login = self._bridge(), f"{subnet}.{LOGIN}"
        _ip("link", "add", bridge, "type", "bridge")
        _ip("addr", "add", f"{login}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        lines = ["127.0.0.1 localhost", f"{login} login", *(f"{address} {name}" for name, address in addresses.items())]
        for i, (name, address) in enumerate(addresses.items()):
            self._add_host(self._namespace(name), self._link(i), f"{address}/24", bridge)
            # slurmd needs the address of its own name.
            self.hosts_file(name).write_text("\n".join(lines) + "\n")
        self._write_configuration(
            f"login({login})", "none",
            *(f"NodeName={name} NodeAddr={address} NodeHostname={name}" for name, address in addresses.items()),
            cores=2 * self.cores)
        self._daemon("slurmctld", "unshare", "--uts", "sh", "-c", 'hostname login && exec "$@"', "sh",
                     self.programs["slurmctld"], "-D", "-i")
        for name in self.names:
            self.start_slurmd(name)
        return self.count

    def _add_host(self, namespace, link, address, bridge):
        _ip("netns", "add", namespace)
        _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        _ip("link", "set", link, "master", bridge, "up")
        _ip("-n", namespace, "addr", "add", address, "dev", "eth0")
        for name in ("eth0", "lo"):
            _ip("-n", namespace, "link", "set", name, "up")
        for there in (["tc", "qdisc", "add", "dev", link], ["tc", "-n", namespace, "qdisc", "add", "dev", "eth0"]):
            subprocess.run([*there, "root", "tbf", "rate", self.rate, "burst", "256kb", "latency", "50ms"],
                           check=True, capture_output=True, text=True)


def _ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], check=check, capture_output=True, text=True).stdout


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _free_subnet():
    taken = set(re.findall(r"inet (\d+\.\d+\.\d+)\.", _ip("-4", "addr")))
    numbers = (os.getpid() + i for i in range(250))
    return next(subnet for number in numbers if (subnet := f"10.98.{number % 250}") not in taken)
