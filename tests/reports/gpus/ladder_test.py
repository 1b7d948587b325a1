# SPDX-License-Identifier: Apache-2.0
# labels: process torch
# timeout: 900
"""Tests how `howmany gpus -- python SCRIPT` finds out how to start a script (starts.py)."""

import json
import pathlib
import shlex
import shutil
import subprocess
import time

import processes
import programs
from torch_scripts import PYTHON, needs_torch

STARTS = pathlib.Path(__file__).resolve().parent / "starts.py"
SINGLE, ONE_RANK, TWO = (1, "single", "local"), (1, "ddp", "gloo"), (2, "ddp", "gloo")


def rows_of(answer):
    return [(row["devices"], row["mode"], row["backend"]) for row in answer["table"]]


@needs_torch
class Ladder(programs.TestCase):
    def gpus(self, *command, options=(), **environment):
        self.out = self.folder / "out"
        return programs.run("howmany", "gpus", "--devices", "cpu:0,cpu:1", "--oversubscribe", "--rounds", 1, "--time-budget",
                            1, "--out", self.out, *options, "--", *command, timeout=200, **environment)

    def answer(self, *command, **named):
        done = self.gpus(*command, **named)
        self.assertEqual(done.code, 0, done)
        answer = json.loads((self.out / "summary.json").read_text())["answer"]["gpus"]
        answer["rows"] = rows_of(answer)
        return answer

    @programs.nightly
    def test_a_script_that_trains_alone(self):
        answer = self.answer(PYTHON, STARTS, "alone")
        self.assertEqual((answer["rows"], answer["reason"], answer["certain"]), ([SINGLE], "uses_one_device", True))

    @programs.nightly
    def test_the_plain_command_is_the_baseline_and_one_rank_a_row(self):
        self.assertEqual(self.answer(PYTHON, STARTS, "group_if_launched")["rows"], [SINGLE, ONE_RANK, TWO])

    def test_the_launcher_is_left_out_for_the_baseline(self):
        command = [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node=4", STARTS, "group_if_launched"]
        self.assertEqual(self.answer(*command)["rows"], [SINGLE, ONE_RANK, TWO])

    @programs.nightly
    def test_one_rank_under_the_launcher_if_nothing_else_works(self):
        for kind in ("needs_launcher", "always_a_group"):
            self.assertEqual(self.answer(PYTHON, STARTS, kind)["rows"], [SINGLE, TWO], kind)
            self.out.rename(self.folder / kind)

    def test_a_script_that_fails_under_a_launcher_is_measured_alone(self):
        answer = self.answer(PYTHON, STARTS, "only_alone")
        self.assertEqual((answer["rows"], answer["certain"]), ([SINGLE], False))
        self.assertIn("Found no NVIDIA driver", answer["because"])

    def test_ranks_of_its_own(self):
        answer = self.answer(PYTHON, STARTS, "spawns_two")
        self.assertEqual((answer["rows"], answer["reason"]), ([TWO], "no_baseline"))
        if not programs.NIGHTLY:
            return
        self.out.rename(self.folder / "two")
        done = self.gpus(PYTHON, STARTS, "spawns_three")
        self.assertEqual(done.code, 3, done)
        self.assertIn("{n}", done.err)

    @programs.nightly
    def test_a_number_of_its_own(self):
        self.assertEqual(self.answer(PYTHON, STARTS, "spawns_given", "{n}")["rows"], [SINGLE, TWO])

    @programs.nightly
    def test_programs_before_python(self):
        script = self.folder / "train.sh"
        script.write_text(f"exec {shlex.quote(str(PYTHON))} {shlex.quote(str(STARTS))} group_if_many\n")
        commands = [["bash", script], ["env", "PYTHONPATH=/nowhere", "nice", PYTHON, "-W", "ignore", "-X", "faulthandler", STARTS, "group_if_many"]]
        for command in commands if programs.NIGHTLY else commands[:1]:
            self.assertEqual(self.answer(*command)["rows"], [SINGLE, TWO], command)
            self.out.rename(self.folder / command[0])

    def test_one_device_is_rehearsed_as_one_of_many(self):
        cluster = self.folder / "cluster.toml"
        cluster.write_text('name = "ours"\ndevice = "cpu"\ndevices_per_node = 8\nsource = "a test"\n'
                           "[node]\nbusbw_gb_per_s = 1\nlatency_us = 100\n")
        for kind in ("group_if_many", "group_if_launched") if programs.NIGHTLY else ("group_if_many",):
            done = programs.run("howmany", "gpus", "--devices", "cpu:0", "--rounds", 1, "--time-budget", 1, "--up-to", 4,
                                "--cluster", cluster, "--out", self.folder / kind, "--", PYTHON, STARTS, kind, timeout=200)
            self.assertEqual(done.code, 0, done)
            beyond = json.loads((self.folder / kind / "summary.json").read_text())["answer"]["beyond"]
            self.assertEqual([row["devices"] for row in beyond["rehearsed"]], [4], kind)

    def test_a_start_without_a_step_ends(self):
        done = self.gpus(PYTHON, STARTS, "no_step", options=("--start-timeout", 8))
        self.assertEqual(done.code, 3, done)
        self.assertIn("--start-timeout", done.err)
        self.assertEqual(list((self.out).glob(".run*")), [])

    @programs.nightly
    def test_a_python_that_loses_the_hook(self):
        script = self.folder / "train.sh"
        script.write_text(f"PYTHONPATH=/nowhere exec {shlex.quote(str(PYTHON))} {shlex.quote(str(STARTS))} alone\n")
        done = self.gpus("bash", script, options=("--start-timeout", 10))
        self.assertEqual(done.code, 3, done)
        self.assertIn("python -m howmany_hook", done.err)

    def test_the_reason_is_the_scripts_own(self):
        reasons = {"ends": "No GPU, nothing to do"}
        if programs.NIGHTLY:
            reasons |= {"exits": "No checkpoint found", "asks": "EOFError"}
        for kind, reason in reasons.items():
            done = self.gpus(PYTHON, STARTS, kind)
            self.assertEqual(done.code, 3, done)
            self.assertIn(reason, done.err)
            shutil.rmtree(self.out, ignore_errors=True)

    def listens(self, *words):
        """Returns the addresses beyond the loopback interface, and the ports, on which the run listens."""
        self.out = self.folder / "out"
        command = [programs.BIN.resolve() / "howmany", "gpus", "--devices", "cpu:0,cpu:1", "--oversubscribe", "--rounds", "1", "--quiet",
                   "--time-budget", "1", "--out", self.out, "--", PYTHON, *words]
        seen = set()
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None:
                seen |= {place for pid in processes.below(process.pid) for place in processes.listening(pid)}
                time.sleep(0.05)
        self.assertEqual(process.returncode, 0)
        return {place for place in seen if not place[0].is_loopback}

    def test_a_group_for_several_ranks_only_listens_on_the_loopback_interface(self):
        self.assertEqual(self.listens(STARTS, "group_if_many"), set())
        self.assertEqual(rows_of(json.loads((self.folder / "out/summary.json").read_text())["answer"]["gpus"]), [SINGLE, TWO])

    @programs.nightly
    def test_a_launcher_of_the_command_listens_on_the_loopback_interface(self):
        for words in (("--nproc-per-node", "2"), ("--standalone", "--nproc-per-node", "2")):
            self.assertEqual(self.listens("-m", "torch.distributed.run", *words, STARTS, "group_if_launched"), set(), words)
            shutil.rmtree(self.out)


if __name__ == "__main__":
    programs.main()
