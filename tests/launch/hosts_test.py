# SPDX-License-Identifier: Apache-2.0
# labels: netns process kill
# timeout: 300
"""Ranks on hosts (network namespaces with shaped links between them), over gloo and mpi, and what
happens when a link is slow or cut."""

import os
import shutil
import signal
import subprocess
import time
import unittest

import hosts
import processes
import programs

COMMS = {part["name"] for part in
         programs.run("howmany-devices", "--json").json()["backends"]["comms"] if part["usable"]}
ONE = [programs.BIN / "howmany-train", "--model", "mlp:sizes=64-64-10", "--timeout", "3", "--json",
       "--mode", "single"]
TRAIN = [*ONE[:-1], "ddp"]
PATIENCE = 60


class OnHosts(programs.TestCase):
    def use_hosts(self, *rates):
        try:
            self.hosts = hosts.Hosts(rate=list(rates), count=len(rates))
        except hosts.NotPermitted as problem:
            self.skipTest(f"no network namespaces here: {problem}")
        self.addCleanup(self.hosts.remove)

    def start(self, command):
        return self.popen(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "TMPDIR": str(self.folder)})


class TwoHosts(OnHosts):
    def setUp(self):
        super().setUp()
        self.use_hosts("1gbit", "1gbit")

    def start_gloo(self, epochs):
        return [self.start(command) for command in
                self.hosts.gloo_commands(*TRAIN, "--backend", "gloo", "--epochs", epochs)]

    def start_mpi(self, epochs):
        return self.start(self.hosts.mpi_command(self.folder, *TRAIN, "--backend", "mpi", "--epochs", epochs))

    def bytes_sent(self):
        link = self.hosts.links[0]
        told = subprocess.run(["ip", "netns", "exec", self.hosts.names[0], "cat",
                               f"/sys/class/net/{link}/statistics/tx_bytes"], capture_output=True, text=True)
        return int(told.stdout)

    def expected_losses(self):
        single = programs.run(*ONE, "--epochs", 2)
        return [epoch["mean_loss"] for epoch in single.json()["epochs"]]

    def assert_losses(self, text):
        told = programs.Result(0, text, "").json()
        self.assertEqual(len(told["devices"]), 2)
        for epoch, want in zip(told["epochs"], self.expected_losses(), strict=True):
            self.assertAlmostEqual(epoch["mean_loss"], want, places=4)

    @unittest.skipUnless("gloo" in COMMS, "gloo cannot be used here")
    def test_gloo_trains_over_the_link(self):
        ranks = self.start_gloo(2)
        told = [rank.communicate(timeout=PATIENCE) for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], told)
        self.assert_losses(told[0][0])
        self.assertGreater(self.bytes_sent(), 100_000)

    @unittest.skipUnless("mpi" in COMMS and shutil.which("mpirun"), "mpi cannot be used here")
    def test_mpi_trains_over_the_link(self):
        mpirun = self.start_mpi(2)
        out, err = mpirun.communicate(timeout=PATIENCE)
        self.assertEqual(mpirun.returncode, 0, err)
        self.assert_losses(out)
        self.assertGreater(self.bytes_sent(), 100_000)

    @unittest.skipUnless("gloo" in COMMS, "gloo cannot be used here")
    def test_each_host_measures_on_its_own_first_device(self):
        bench = [programs.BIN / "backend_bench", "--backend", "gloo", "--ops", "all_reduce", "--min-bytes", "64",
                 "--max-bytes", "64", "--time-budget", "1"]
        # One core each: two devices on one host would not fit.
        core = min(os.sched_getaffinity(0))
        ranks = [self.start(command) for command in self.hosts.gloo_commands("taskset", "-c", core, *bench)]
        told = [rank.communicate(timeout=PATIENCE) for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], told)
        self.assertIn("bytes:64", told[0][0])

    def wait_for_traffic(self, ranks):
        end, before = time.monotonic() + PATIENCE, self.bytes_sent()
        while self.bytes_sent() < before + 3_000_000:
            self.assertLess(time.monotonic(), end, "no steps between the hosts")
            self.assertEqual([rank.poll() for rank in ranks], [None] * len(ranks))
            time.sleep(0.05)

    @unittest.skipUnless("gloo" in COMMS, "gloo cannot be used here")
    def test_cut_link_ends_both_ranks_and_names_the_other_host(self):
        ranks = self.start_gloo(1_000_000)
        self.wait_for_traffic(ranks)
        self.hosts.cut()
        for rank, process in enumerate(ranks):
            err = process.communicate(timeout=PATIENCE)[1]
            self.assertEqual(process.returncode, 3, err)
            self.assertRegex(err, rf"\[\w+\] rank {rank} of 2 \(gloo\): peer {1 - rank} on "
                                  rf"{self.hosts.names[1 - rank]} .* after [0-9.]+ s")

    @unittest.skipUnless("gloo" in COMMS, "gloo cannot be used here")
    def test_killed_host_is_named(self):
        ranks = self.start_gloo(1_000_000)
        self.wait_for_traffic(ranks)
        for pid in [ranks[1].pid, *processes.below(ranks[1].pid)]:
            os.kill(pid, signal.SIGKILL)
        err = ranks[0].communicate(timeout=PATIENCE)[1]
        self.assertEqual(ranks[0].returncode, 3, err)
        self.assertIn(f"peer 1 on {self.hosts.names[1]} failed", err)


programs.main()
