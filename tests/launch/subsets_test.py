# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 240
"""Two runs at once on disjoint devices: each keeps to its own cores, ports and files, and trains as
it does alone."""

import os
import subprocess
import time
import unittest

import processes
import programs

CORES = sorted(os.sched_getaffinity(0))
HAS_GLOO = any(part["name"] == "gloo" and part["usable"] for part in
               programs.run("howmany-devices", "--json").json()["backends"]["comms"])
PATIENCE = 60


def threads_on(pid):
    """The cores each thread of a process may use."""
    found = set()
    for task in os.listdir(f"/proc/{pid}/task"):
        found.add(frozenset(os.sched_getaffinity(int(task))))
    return found


@unittest.skipUnless(HAS_GLOO, "gloo was not built or cannot be used here")
@unittest.skipUnless(len(CORES) >= 2, "needs two cores")
class Subsets(programs.TestCase):
    def devices(self):
        """cpu:0,... for one run and the rest for the other: 2 and 4 where there are six cores."""
        first = 2 if len(CORES) >= 6 else 1
        last = 6 if len(CORES) >= 6 else 2
        return [[f"cpu:{i}" for i in range(first)], [f"cpu:{i}" for i in range(first, last)]]

    def start(self, name, model, devices, epochs):
        """Ranks as processes, also for one device, so that both runs open ports and folders."""
        scratch = self.folder / name
        scratch.mkdir(exist_ok=True)
        mode = ("--mode", "ddp", "--backend", "gloo") if len(devices) > 1 else ("--mode", "single")
        return subprocess.Popen(
            [programs.BIN / "howmany-train", "--model", model, *mode, "--devices", ",".join(devices),
             "--epochs", str(epochs), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "TMPDIR": str(scratch)})

    def losses(self, process):
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, err)
        return [epoch["mean_loss"] for epoch in programs.Result(0, out, err).json()["epochs"]]

    def test_two_trainings_do_not_disturb_each_other(self):
        runs = list(zip(("a", "b"), ("mlp:sizes=64-64-10", "simple_net"), self.devices()))
        alone = [self.losses(self.start(*run, 20)) for run in runs]
        both = [self.start(*run, 20) for run in runs]
        self.assertEqual([self.losses(process) for process in both], alone)
        self.assertEqual([list((self.folder / name).iterdir()) for name, _, _ in runs], [[], []])

    def test_cores_of_the_two_are_disjoint(self):
        started = [self.start(name, "mlp:sizes=64-64-10", devices, 1_000_000)
                   for name, devices in zip(("a", "b"), self.devices())]
        for process in started:
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
        used = [self.wait_for_cores(process, len(devices))
                for process, devices in zip(started, self.devices())]
        self.assertEqual(used[0] & used[1], set(), used)

    def wait_for_cores(self, process, count):
        """The cores to which the run's threads are bound, once there are as many as devices."""
        end = time.monotonic() + PATIENCE
        while True:
            bound = set()
            for pid in [process.pid, *processes.below(process.pid)]:
                try:
                    bound |= {cores for cores in threads_on(pid) if len(cores) < len(CORES)}
                except OSError:
                    continue
            cores = set().union(*bound)
            if len(cores) >= count:
                return cores
            self.assertLess(time.monotonic(), end, f"bound to {cores} only")
            time.sleep(0.02)

    def test_two_benches_keep_their_own_files(self):
        outs = [self.folder / "out-a", self.folder / "out-b"]
        started = [subprocess.Popen(
            [programs.BIN / "howmany", "gpus", "--model", "simple_net", "--mode", "ddp,data_parallel",
             "--backend", "gloo", "--devices", ",".join(devices), "--rounds", "1", "--time-budget", "4",
             "--quiet", "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for devices, out in zip(self.devices(), outs)]
        for process in started:
            err = process.communicate(timeout=PATIENCE)[1]
            self.assertEqual(process.returncode, 0, err)
        for out in outs:
            self.assertTrue((out / "summary.json").exists())


programs.main()
