# SPDX-License-Identifier: Apache-2.0
"""Runs howmany on the login node of an allocation of several hosts."""

import json
import os
import pathlib
import subprocess
import unittest
import uuid

import programs
import slurm_hosts

MARK = "HOWMANY_TEST_MARK"  # in the environment of all processes of a case


class Allocation(programs.TestCase):
    COUNT = 2

    @classmethod
    def setUpClass(cls):
        try:
            cls.hosts = slurm_hosts.Hosts(count=cls.COUNT)
        except (slurm_hosts.CannotStart, OSError, subprocess.SubprocessError) as problem:
            raise unittest.SkipTest(f"no Slurm of several hosts here: {problem}") from None
        cls.addClassCleanup(cls.hosts.stop)
        cls.job = cls.hosts.allocate()

    def setUp(self):
        super().setUp()
        self.mark = f"{MARK}={uuid.uuid4()}"
        self.out = self.folder / "out"
        self.tmp = self.folder / "tmp"
        self.tmp.mkdir()

    def environment(self):
        name, value = self.mark.split("=")
        return {**self.job, "TMPDIR": str(self.tmp), name: value}

    def start(self, *command):
        return self.popen(*command, env=self.environment(), cwd=self.folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)

    def result(self, process, timeout=200):
        out, err = process.communicate(timeout=timeout)
        return programs.Result(process.returncode, out, err)

    def howmany(self, *arguments, before=(), **options):
        """`before`: words before the command."""
        return self.result(self.start(*before, *self.gpus(*arguments, **options)))

    def gpus(self, *arguments, nodes="1,2", rounds=1, seconds=10):
        """The words of a measurement."""
        return [(programs.BIN / "howmany").resolve(), "gpus", "--nodes", nodes, "--cores-per-device", self.hosts.cores,
                "--rounds", rounds, "--time-budget", seconds, "--out", self.out, *arguments]

    def summary(self):
        return json.loads((self.out / "summary.json").read_text())

    def rows(self):
        """The measured rows by their numbers of nodes and devices."""
        return {tuple(int(row["parameters"][key]) for key in ("nodes", "devices")): row
                for row in self.summary()["measurements"] if row["parameters"]["mode"] != "single"}

    def processes(self):
        """Returns the processes of this case, on all hosts."""
        found = {pid for name in self.hosts.names for pid in self.hosts.processes_on(name)}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            if self.mark.encode() in programs.read_bytes(entry / "environ"):
                found.add(int(entry.name))
        return found

    def running(self, program, host):
        """Returns a process of the program on a host that does more than list its cases, or None."""
        for pid in self.hosts.processes_on(host):
            words = programs.read_bytes(pathlib.Path(f"/proc/{pid}/cmdline")).decode().split("\0")
            if os.path.basename(words[0]) == program and "--list" not in words:
                return pid
        return None

    def wait_until_ended(self, seconds):
        self.wait_until("the end of all processes", lambda: not self.processes(), seconds)

    def assert_all_ended(self, seconds=20):
        self.wait_until_ended(seconds)
        self.assertEqual(self.hosts.steps(), [])
        told = self.hosts.run("squeue", "--noheader", f"--jobs={self.job['SLURM_JOB_ID']}", "--format=%T")
        self.assertEqual(told.stdout.split(), ["RUNNING"])

    def mount_on(self, host, *words, target):
        """Mounts something on a host until the end of the case."""
        self.hosts.run_on(host, "mount", *words, target)
        self.addCleanup(self.hosts.run_on, host, "umount", target)
