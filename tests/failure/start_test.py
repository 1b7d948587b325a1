# SPDX-License-Identifier: Apache-2.0
# labels: process kill
# timeout: 300
"""Starts that go wrong: closed streams, a missing or full TMPDIR, early interrupts, few open files,
a rank stopped at its start, a full shared memory folder. Each run ends in time with a message, and
leaves nothing."""

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import time
import unittest

import processes
import programs

COMMS = {part["name"] for part in
         programs.run("howmany-devices", "--json").json()["backends"]["comms"] if part["usable"]}
BACKENDS = sorted(COMMS & {"gloo", "mpi"})
TRAIN = ("howmany-train", "--model", "mlp:sizes=64-64-10", "--mode", "ddp", "--devices", "cpu:0,cpu:1",
         "--oversubscribe")
GPUS = ("howmany", "gpus", "--model", "mlp:sizes=64-64-10", "--devices", "cpu:0", "--rounds", "1",
        "--time-budget", "2", "--quiet")
PATIENCE = 60  # far more than the limits below on an idle machine


def close_streams(*fds):
    def close():
        for fd in fds:
            os.close(fd)
    return close


def limit(kind, value):
    return lambda: resource.setrlimit(kind, (value, value))


class Start(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.scratch = self.folder / "tmp"
        self.scratch.mkdir()

    def popen(self, *command, **options):
        environment = {**os.environ, "TMPDIR": str(self.scratch), **options.pop("env", {})}
        return super().popen(programs.BIN / command[0], *command[1:], env=environment, **options)

    def run_program(self, *command, **options):
        process = self.popen(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        out, err = process.communicate(timeout=PATIENCE)
        return programs.Result(process.returncode, out, err)

    def assert_nothing_left(self):
        self.wait_until("empty folders", lambda: not list(self.scratch.iterdir()))


class Streams(Start):
    def test_closed_stderr_ends_no_measurement(self):
        for command in ((*GPUS, "--out", self.folder / "gpus"),
                        ("speedup_bench", "--model", "mlp:sizes=64-64-10", "--mode", "single",
                         "--max-iterations", "5"),
                        ("howmany-devices",), (*TRAIN, "--epochs", 1, "--backend", "local")):
            with self.subTest(command=command[0]):
                process = self.popen(*command, stdout=subprocess.PIPE, preexec_fn=close_streams(2))
                out = process.communicate(timeout=PATIENCE)[0]
                self.assertEqual(process.returncode, 0, out)
                self.assertTrue(out)

    def test_stderr_on_a_full_disk_ends_no_measurement(self):
        command = [word for word in GPUS if word != "--quiet"]
        with open("/dev/full", "w") as full:
            process = self.popen(*command, "--out", self.folder / "gpus", stdout=subprocess.PIPE, stderr=full)
        self.assertTrue(process.communicate(timeout=PATIENCE)[0])
        self.assertEqual(process.returncode, 0)

    def test_closed_stdout_is_an_error(self):
        for backend in ("local", *BACKENDS):
            with self.subTest(backend=backend):
                process = self.popen(*TRAIN, "--epochs", 1, "--backend", backend,
                                     stderr=subprocess.PIPE, preexec_fn=close_streams(0, 1))
                err = process.communicate(timeout=PATIENCE)[1]
                self.assertEqual(process.returncode, 3, err)
                self.assertIn("stdout", err)
        self.assert_nothing_left()

    def test_all_streams_closed_is_an_error(self):
        for backend in BACKENDS:
            with self.subTest(backend=backend):
                process = self.popen(*TRAIN, "--epochs", 1, "--backend", backend,
                                     preexec_fn=close_streams(0, 1, 2))
                self.assertEqual(process.wait(PATIENCE), 3)

    @unittest.skipIf(programs.sanitized(), "a sanitizer needs more address space than the limit")
    def test_lack_of_memory_is_reported(self):
        for backend in BACKENDS:
            with self.subTest(backend=backend):
                result = self.run_program(*TRAIN, "--epochs", 1, "--backend", backend, "--timeout", 5,
                                          preexec_fn=limit(resource.RLIMIT_AS, 110_000 * 1024))
                self.assertEqual(result.code, 3, result)
                self.assertRegex(result.err, "ulimit -v")
        self.assert_nothing_left()

    def test_file_size_limit_is_reported(self):
        (self.folder / "out").mkdir()
        result = self.run_program(*GPUS, "--out", self.folder / "out",
                                  preexec_fn=limit(resource.RLIMIT_FSIZE, 4096))
        self.assertIn(result.code, (2, 3), result)
        self.assertTrue(result.err.strip(), result)


class Places(Start):
    def test_missing_tmpdir_is_named(self):
        for command in (*((*TRAIN, "--backend", backend) for backend in BACKENDS),
                        (*GPUS, "--out", self.folder / "out")):
            with self.subTest(command=command):
                self.assert_refused(self.run_program(*command, env={"TMPDIR": "/nonexistent"}),
                                    "TMPDIR", "/nonexistent")

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "cannot mount here")
    def test_full_tmpdir_is_named(self):
        for command in (*((*TRAIN, "--backend", backend) for backend in BACKENDS),
                        (*GPUS, "--out", self.folder / "out")):
            with self.subTest(command=command):
                done = subprocess.run(
                    ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=8k none "$TMPDIR" && exec "$@"', "sh",
                     programs.BIN / command[0], *command[1:]], capture_output=True, text=True, timeout=PATIENCE,
                    env={**os.environ, "TMPDIR": str(self.scratch)})
                self.assert_refused(programs.Result(done.returncode, done.stdout, done.stderr), "TMPDIR", "full")


class Early(Start):
    def test_an_interrupt_before_measuring_ends_with_130(self):
        source = random.Random(1)
        for command in (GPUS, ("howmany", "backend", "--quiet"), ("howmany", "transfer", "--quiet"), ("howmany", "devices"),
                        ("howmany", "workers", "--quiet", "--samples-per-second", "100")):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                with self.subTest(command=command[1], signal=number):
                    process = self.popen(*command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    self.wait_until("main()", lambda: processes.catches(process.pid, number))
                    time.sleep(source.uniform(0, 0.5))
                    process.send_signal(number)
                    if process.wait(PATIENCE) != 0:  # else it had ended
                        self.assertEqual(process.returncode, 130)
                    self.assert_nothing_left()


@unittest.skipUnless("mpi" in COMMS, "mpi cannot be used here")
class Mpirun(Start):
    def test_few_open_files_end_in_time(self):
        start = time.monotonic()
        result = self.run_program(*TRAIN, "--backend", "mpi", "--epochs", 1, "--timeout", 1,
                                  preexec_fn=limit(resource.RLIMIT_NOFILE, 32))
        self.assertEqual(result.code, 3, result)
        self.assertIn("mpirun", result.err)
        self.assertIn("ulimit -n", result.err)
        self.assertLess(time.monotonic() - start, PATIENCE)
        self.assert_nothing_left()

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "cannot mount here")
    def test_full_shared_memory_is_reported(self):
        command = [programs.BIN / TRAIN[0], *TRAIN[1:], "--backend", "mpi", "--epochs", "1"]
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=2m none /dev/shm && exec "$@"',
             "sh", *command], capture_output=True, text=True, timeout=PATIENCE)
        self.assert_refused(programs.Result(done.returncode, done.stdout, done.stderr),
                            "/dev/shm", "2 MiB are free", "--backend gloo", code=3)

    def test_its_last_words_are_shown(self):
        fake = self.folder / "bin"
        fake.mkdir()
        (fake / "mpirun").write_text("#!/bin/sh\necho 'no slots, said mpirun' >&2\nexit 134\n")
        (fake / "mpirun").chmod(0o755)
        result = self.run_program(*TRAIN, "--backend", "mpi", "--epochs", 1,
                                  env={"PATH": f"{fake}:{os.environ['PATH']}"})
        self.assertEqual(result.code, 3, result)
        self.assertRegex(result.err.splitlines()[-1], "mpirun .*134.*no slots, said mpirun")

    def test_listens_on_the_loopback_interface_only(self):
        process = self.popen(*TRAIN, "--backend", "mpi", "--epochs", 1_000_000,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        pids = [process.pid, *processes.below(process.pid)]
        listening = [address for pid in pids for address, _ in processes.listening(pid)]
        self.assertTrue(listening, "mpirun listens for its ranks")
        self.assertEqual([a for a in listening if not a.is_loopback], [])
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 130)

    def test_killed_parent_takes_all_along(self):
        process = self.popen(*TRAIN, "--backend", "mpi", "--epochs", 1_000_000,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.readline()
        below = processes.below(process.pid)
        segments = [path for pid in below for path in processes.mapped(pid, "/dev/shm/howmany-")]
        self.assertTrue(segments)
        os.kill(processes.ranks_below(process.pid)[1], signal.SIGSTOP)
        process.kill()
        process.communicate(timeout=PATIENCE)
        self.wait_until("the end of all processes", lambda: not any(map(processes.alive, below)))
        self.assert_nothing_left()
        self.wait_until("free shared memory", lambda: not any(map(os.path.exists, segments)))

    def test_early_interrupts_exit_with_130(self):
        for delay in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3):
            process = self.popen(*TRAIN, "--backend", "mpi", "--epochs", 1_000_000,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            err = process.communicate(timeout=PATIENCE)[1]
            # The default action of SIGINT, before main() runs. A shell reports it as 130, too.
            self.assertIn(process.returncode, (130, -signal.SIGINT), err)
            self.assert_nothing_left()


class Ranks(Start):
    def test_rank_stopped_at_its_start_is_named(self):
        for backend in BACKENDS:
            with self.subTest(backend=backend):
                process = self.popen(*TRAIN, "--backend", backend, "--epochs", 1_000_000,
                                     "--timeout", 2, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE)
                ranks = self.wait_until("rank 1", lambda: (
                    lambda found: found if 1 in found else None)(
                        processes.ranks_below(process.pid)))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(ranks[1], signal.SIGSTOP)
                err = process.communicate(timeout=PATIENCE)[1]
                self.assertEqual(process.returncode, 3, err)
                self.assertRegex(err, "rank 1 of 2 did not connect .*SIGSTOP|peer 1")
                self.assertFalse(any(map(processes.alive, ranks.values())))
                self.assert_nothing_left()

    def test_hangup_is_an_interrupt(self):
        for backend in ("local", *BACKENDS):
            with self.subTest(backend=backend):
                process = self.popen(*TRAIN, "--backend", backend, "--epochs", 1_000_000,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                process.stdout.readline()
                below = processes.below(process.pid)
                process.send_signal(signal.SIGHUP)
                err = process.communicate(timeout=PATIENCE)[1]
                self.assertEqual(process.returncode, 130, err)
                self.assertFalse(any(map(processes.alive, below)))
                self.assert_nothing_left()

    def test_ended_measurement_leaves_nothing(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(signal=number.name):
                process = self.popen("howmany", "gpus", "--model", "mlp:sizes=64-64-10", "--mode", "ddp",
                                     "--devices", "cpu:0,cpu:1", "--oversubscribe", "--quiet", "--time-budget",
                                     60, "--out", self.folder / number.name, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE)
                self.wait_until("ranks", lambda: len(
                    processes.ranks_below(process.pid, "speedup_bench")) == 2)
                below = processes.below(process.pid)
                process.send_signal(number)
                err = process.communicate(timeout=PATIENCE)[1]
                self.assertEqual(process.returncode, 130, err)
                self.wait_until("the end of all", lambda: not any(map(processes.alive, below)))
                self.assert_nothing_left()

    def test_ended_loader_leaves_no_images(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            process = self.popen("loader_bench", "--case-budget", 600, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
            # A folder appears shortly before its guard does, a file after it.
            self.wait_until("synthetic images", lambda: list(self.scratch.glob("*/*")))
            process.send_signal(number)
            process.wait(PATIENCE)
            self.assert_nothing_left()


# Programs inherit ignored signals, as from nohup and from background jobs of a shell.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
programs.main()
