# SPDX-License-Identifier: Apache-2.0
# labels: process kill slow
# timeout: 900
"""Random signals at random times to random ranks or their parent, over every mode and backend. Every
run ends within its timeout and 5 s, with no process and no temporary folder left.

    signals_test.py --signals 300 --interrupts 60 --strict

is the long run; without options, 24 and 6. Only --strict fails for a late end, since a busy machine
may delay any.
"""

import argparse
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

import processes
import programs

SEED = 20261125
TIMEOUT = 5  # of a collective
AFTER = 5  # seconds after the timeout in which a run must have ended
SETTLE = 3  # seconds until what outlived the parent must be gone
SIGNALS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV)
PATIENCE = 120
SHARED = pathlib.Path("/dev/shm")
COMMS = {part["name"] for part in
         programs.run("howmany-devices", "--json").json()["backends"]["comms"] if part["usable"]}
# Mode, backend and number of devices.
CASES = [(mode, backend, devices)
         for mode, devices in (("ddp", 2), ("ddp", 3), ("sharded", 2), ("tensor", 2), ("pipeline", 2), ("model", 2), ("hybrid:stages=2", 4),
                               ("data_parallel", 2))
         for backend in ("local", "gloo", "mpi")
         if backend in COMMS and (mode != "data_parallel" or backend == "local")]


class Run:
    """An endless training run, and its remains."""

    def __init__(self, folder, case):
        self.mode, self.backend, self.devices = case
        self.scratch = folder
        self.shared = set(os.listdir(SHARED))
        self.process = subprocess.Popen(
            [programs.BIN / "howmany-train", "--model", "mlp:sizes=64-64-10", "--mode", self.mode,
             "--backend", self.backend, "--devices", ",".join(f"cpu:{i}" for i in range(self.devices)),
             "--oversubscribe", "--epochs", "1000000", "--timeout", str(TIMEOUT)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "TMPDIR": str(folder)})

    def end(self):
        """Waits for the end; returns the seconds and stderr."""
        start = time.monotonic()
        err = self.process.communicate(timeout=PATIENCE)[1]
        return time.monotonic() - start, err

    def members(self):
        """Returns every process with this run's TMPDIR."""
        mark = f"TMPDIR={self.scratch}".encode()
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                pass
        return [pid for pid in found if processes.alive(pid)]

    def segments(self):
        """Returns new folders of shared memory that no process has in its command, as mpirun and
        the shell that removes the folder have. Other runs of this host may make some, too."""
        new = [name for name in set(os.listdir(SHARED)) - self.shared if name.startswith("howmany-")]
        commands = b"".join(programs.read_bytes(entry / "cmdline")
                            for entry in pathlib.Path("/proc").glob("[0-9]*")) if new else b""
        return [name for name in new if name.encode() not in commands and (SHARED / name).exists()]

    def leftovers(self):
        """Returns the processes and folders that remain after a delay."""
        end = time.monotonic() + SETTLE
        while True:
            folders = [str(path) for path in self.scratch.iterdir()]
            folders += self.segments()
            left = self.members()
            if not (folders or left) or time.monotonic() > end:
                return left, folders
            time.sleep(0.02)

    def kill(self):
        for pid in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


class Signals(programs.TestCase):
    SIGNALS, INTERRUPTS, STRICT = 24, 6, False

    def start(self, case, number):
        scratch = self.folder / f"tmp{number}"
        scratch.mkdir()
        run = Run(scratch, case)
        self.addCleanup(run.process.stderr.close)
        self.addCleanup(run.kill)
        return run

    def send(self, draw, run, number):
        """Sends the signal to a rank, or the parent; a stopped parent goes on after a while."""
        ranks = processes.ranks_below(run.process.pid, "howmany-train")
        target = draw.choice(["parent", *sorted(ranks)])
        if target == "parent" or run.backend == "local":
            run.process.send_signal(number)
            if number == signal.SIGSTOP:
                time.sleep(draw.uniform(0, 0.5))
                run.process.send_signal(signal.SIGCONT)
                run.process.send_signal(signal.SIGTERM)
            return "parent"
        try:
            os.kill(ranks[target], number)
        except ProcessLookupError:
            pass
        return f"rank {target}"

    def test_random_signals_leave_nothing(self):
        draw = random.Random(SEED)
        print(f"seed {SEED}, {self.SIGNALS} signals over {len(CASES)} cases", flush=True)
        slowest, orphans, folders, codes = 0, 0, 0, {}
        for shot in range(self.SIGNALS):
            case, number = CASES[shot % len(CASES)], SIGNALS[shot // len(CASES) % len(SIGNALS)]
            delay = draw.choice((draw.uniform(0, 0.4), draw.uniform(0, 2)))
            run = self.start(case, shot)
            time.sleep(delay)
            target = self.send(draw, run, number)
            seconds, err = run.end()
            left, stay = run.leftovers()
            what = (f"shot {shot}: {number.name} to {target} of {case} after {delay:.3f} s: "
                    f"exit {run.process.returncode} after {seconds:.2f} s")
            slowest = max(slowest, seconds)
            orphans += len(left)
            folders += len(stay)
            codes[run.process.returncode] = codes.get(run.process.returncode, 0) + 1
            if seconds > TIMEOUT + AFTER or left or stay:
                print(what, "left:", left, stay, err, flush=True)
            with self.subTest(what):
                self.assertNotEqual(run.process.returncode, 0)
                self.assertEqual((left, stay), ([], []), err)
                if self.STRICT:
                    self.assertLessEqual(seconds, TIMEOUT + AFTER, err)
                if run.process.returncode == 3:
                    self.assertTrue(err.strip(), "an error without a message")
            run.kill()
        print(f"{self.SIGNALS} signals: {orphans} orphans, {folders} folders left, slowest end "
              f"{slowest:.2f} s after the signal, exit codes {dict(sorted(codes.items()))}", flush=True)

    @unittest.skipUnless("mpi" in COMMS, "mpi cannot be used here")
    def test_early_interrupts_under_mpi_exit_with_130(self):
        draw = random.Random(SEED)
        codes, slowest = {}, 0
        for shot in range(self.INTERRUPTS):
            delay = draw.uniform(0, 0.3)
            run = self.start(("ddp", "mpi", 2), f"int{shot}")
            time.sleep(delay)
            run.process.send_signal(signal.SIGINT)
            seconds, err = run.end()
            slowest = max(slowest, seconds)
            codes[run.process.returncode] = codes.get(run.process.returncode, 0) + 1
            with self.subTest(f"interrupt {shot} after {delay:.3f} s"):
                # -2: before main() runs. A shell reports 130 for it, too.
                self.assertIn(run.process.returncode, (130, -signal.SIGINT), err)
                if self.STRICT:
                    self.assertLessEqual(seconds, AFTER, err)
                self.assertEqual(run.leftovers(), ([], []))
            run.kill()
        print(f"{self.INTERRUPTS} early interrupts: exit codes {codes}, slowest end {slowest:.2f} s", flush=True)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--signals", type=int, default=Signals.SIGNALS)
    parser.add_argument("--interrupts", type=int, default=Signals.INTERRUPTS)
    parser.add_argument("--strict", action="store_true")
    options, sys.argv[1:] = parser.parse_known_args()
    Signals.SIGNALS, Signals.INTERRUPTS = options.signals, options.interrupts
    Signals.STRICT = options.strict


parse()
# Programs inherit ignored signals, as from nohup and from background jobs of a shell.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
programs.main()
