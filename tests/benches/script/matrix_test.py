# SPDX-License-Identifier: Apache-2.0
# labels: process torch alone
# timeout: 1500
"""Measures real PyTorch scripts with script_bench: the steps, samples and times are those of the
scripts' own timer. Needs a Python with torch: $HOWMANY_TORCH_PYTHON or the active one."""

import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import time
import unittest

import processes
import programs

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
SAME_TIME = 0.01  # relative
GRADIENT_BYTES = 4 * (256 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 10 + 10)  # of scripts/parts.py


def torch_python():
    for name in [os.environ.get("HOWMANY_TORCH_PYTHON", ""), "python3", "python"]:
        found = name and shutil.which(name)
        if found and subprocess.run([found, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
            return found
    return None


PYTHON = torch_python()
needs_torch = unittest.skipUnless(PYTHON, "no Python with torch; set HOWMANY_TORCH_PYTHON")


def has(package):
    return PYTHON and subprocess.run([PYTHON, "-c", f"import {package}"], capture_output=True,
                                     check=False).returncode == 0


def torchrun(name):
    return [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "{n}", SCRIPTS / name]


class Measured(programs.TestCase):
    def bench(self, command, *arguments, devices=1, seconds=0.5, **environment):
        self.bench_file, self.samples_file = self.folder / "bench.json", self.folder / "samples.jsonl"
        self.timer = self.folder / "timer"
        scratch = self.folder / "tmp"
        scratch.mkdir(exist_ok=True)
        done = programs.run(
            "script_bench", "--devices", ",".join(f"cpu:{i}" for i in range(devices)), "--case-budget", seconds,
            "--run-timeout", 200, f"--benchmark_out={self.bench_file}", "--samples-file", self.samples_file,
            *arguments, "--", *command, timeout=240, OWN_TIMER=str(self.timer), TMPDIR=str(scratch), **environment)
        self.assertEqual(list(scratch.glob("howmany*")), [])
        return done

    def measure(self, command, *arguments, **named):
        """Returns the row, the line of samples and the ticks of the script's own timer."""
        done = self.bench(command, *arguments, **named)
        row = self.row()
        self.assertNotIn("error_message", row, done)
        self.assertEqual(done.code, 0, done)
        line = json.loads(self.samples_file.read_text())
        ticks = pathlib.Path(f"{self.timer}.0")
        return row, line, json.loads(ticks.read_text()) if ticks.exists() else []

    def row(self):
        return json.loads(self.bench_file.read_text())["benchmarks"][0]

    def error(self, command, **named):
        done = self.bench(command, **named)
        self.assertEqual(done.code, 3, done)
        return self.row()["error_message"]

    def check_times(self, row, line, ticks):
        """Each timed step lasts as long as by the script's own timer; a busy machine may delay one
        of the two clocks at some steps."""
        first = int(row["warmup_steps"])
        own = [b - a for a, b in zip(ticks, ticks[1:])][first - 1:]
        pairs = list(zip(line["seconds"], own))
        self.assertGreaterEqual(len(pairs), len(line["seconds"]) - 1)
        difference = statistics.median(abs(a - b) for a, b in pairs)
        self.assertLess(difference / statistics.median(own), SAME_TIME)

    def check(self, script, samples, parallel="single", backend="", visible=True, devices=1, ticks=True):
        command = torchrun(script) if devices > 1 else [PYTHON, SCRIPTS / script]
        row, line, own = self.measure(command, devices=devices)
        self.assertEqual([line["parameters"][key] for key in ("global_batch", "mode", "backend")],
                         [str(samples), parallel, backend])
        self.assertEqual(row["ranks"], devices)
        self.assertEqual("data_wait_fraction" in row, visible, row)
        if ticks and devices == 1:  # with several, the times are the maxima over ranks
            self.check_times(row, line, own)
        return row, line


@needs_torch
class Scripts(Measured):
    def test_a_plain_loop(self):
        row, line = self.check("plain.py", 64)
        self.assertEqual(row["gradient_bytes"], GRADIENT_BYTES)
        self.assertEqual(line["parameters"]["threads"], "1")

    def test_gradient_accumulation_counts_all_micro_batches(self):
        self.check("accumulation.py", 4 * 64)

    def test_mixed_precision_with_a_scaler(self):
        self.check("scaler.py", 64, ticks=False)

    def test_two_optimizers_are_one_step(self):
        row, _ = self.check("two_optimizers.py", 64, ticks=False)  # a step ends after the first one
        self.assertEqual(row["gradient_bytes"], 2 * GRADIENT_BYTES)

    def test_optimizers_within_backward_are_one_step(self):
        row, line = self.check("optimizer_in_backward.py", 64, ticks=False)
        self.assertEqual(row["gradient_bytes"], GRADIENT_BYTES)
        self.assertNotIn("optimizer_fraction", row)
        self.assertIn("optimizer within backward", line["flags"])

    def test_worker_processes_and_a_validation_loader(self):
        self.check("workers.py", 64)

    def test_an_iterable_dataset_of_dictionaries(self):
        self.check("iterable.py", 64)

    def test_a_compiled_model(self):
        self.check("compiled.py", 64)

    def test_without_a_loader_the_inputs_show_the_batch(self):
        _, line = self.check("no_loader.py", 64, visible=False)
        self.assertIn("data wait not visible", line["flags"])

    def test_ddp(self):
        row, _ = self.check("ddp.py", 128, "ddp", "gloo", devices=2)
        self.assertGreater(row["ddp_communication_s"], 0)

    def test_ddp_is_put_around_a_plain_model(self):
        for script in ("plain.py", "no_loader.py"):
            row, line, _ = self.measure(torchrun(script), "--try-ddp", devices=2)
            self.assertEqual([line["parameters"][key] for key in ("global_batch", "mode", "backend")],
                             ["128", "ddp", "gloo"])
            self.samples_file.unlink()

    def test_fsdp(self):
        self.check("fsdp.py", 128, "dtensor", "gloo", devices=2)

    def test_tensor_parallelism(self):
        self.check("tensor_parallel.py", 128, "dtensor", "gloo", devices=2)

    @unittest.skipUnless(has("transformers") and has("accelerate"), "no transformers and accelerate")
    def test_hugging_face_trainer(self):
        self.check("trainer.py", 128)

    @unittest.skipUnless(has("lightning"), "no lightning")
    def test_lightning(self):
        self.check("lightning_module.py", 128, ticks=False)

    @unittest.skipUnless(has("accelerate"), "no accelerate")
    def test_accelerate(self):
        self.check("accelerated.py", 64)

    @unittest.skipUnless(has("deepspeed"), "no deepspeed")
    def test_deepspeed_steps_its_groups_together(self):
        for stage in ("1", "3"):
            _, line, _ = self.measure(torchrun("deepspeed_engine.py"), devices=2, STAGE=stage)
            self.assertEqual([line["parameters"][key] for key in ("global_batch", "mode", "backend")],
                             ["128", "group", "gloo"])
            self.samples_file.unlink()

    def test_samples_per_step_of_the_command_line_win(self):
        _, line, _ = self.measure([PYTHON, SCRIPTS / "plain.py"], "--samples-per-step", 5)
        self.assertEqual(line["parameters"]["global_batch"], "5")

    def test_each_rank_has_cores_of_its_own(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one core")
        _, line, _ = self.measure(torchrun("ddp.py"), devices=2)
        self.assertNotIn("oversubscribed", line["flags"])

    def test_without_entry_points_the_hook_is_run_as_a_module(self):
        row, line, own = self.measure([PYTHON, "-m", "howmany_hook", SCRIPTS / "plain.py"],
                                      TORCH_DEVICE_BACKEND_AUTOLOAD="0")
        self.check_times(row, line, own)


@needs_torch
class Rehearsed(Measured):
    """A group of more ranks than there are."""

    def rehearse(self, script, world, seconds_per_gib=1.0, latency=1e-4, devices=1, **more):
        costs = self.folder / "costs.json"
        points = [[1024, latency], [1 << 30, latency + seconds_per_gib]]
        kinds = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
        costs.write_text(json.dumps({"world": world} | {kind: points for kind in kinds} | more))
        return self.measure([*torchrun(script)], "--rehearse", costs, devices=devices)

    def test_each_device_that_is_here_runs_a_rank(self):
        row, line, _ = self.rehearse("filled.py", 4, devices=2)
        self.assertEqual([line["parameters"][key] for key in ("devices", "global_batch")], ["4", str(4 * 64)])
        self.assertEqual(row["ranks"], 2)

    def test_one_process_is_a_rank_of_64(self):
        row, line, _ = self.rehearse("ddp.py", 64)
        self.assertEqual(row["name"], "rehearsal/script/script/devices:64")
        self.assertEqual([line["parameters"][key] for key in ("devices", "global_batch", "mode", "evidence")],
                         ["64", str(64 * 64), "ddp", "rehearsed"])
        self.assertEqual(row["gradient_bytes"], GRADIENT_BYTES)

    def test_no_step_ends_before_its_collectives(self):
        row, line, _ = self.rehearse("ddp.py", 8, seconds_per_gib=5)
        self.assertGreaterEqual(len(line["steps"]), 5)
        for step in line["steps"]:
            end = 0
            for one in step["collectives"]:
                self.assertEqual([one["op"], one["ranks"], one["backward"]], ["all_reduce", 8, 0])
                end = max(end, one["at_s"]) + one["s"]
            self.assertGreaterEqual(step["s"], end)
            self.assertEqual(sum(one["bytes"] for one in step["collectives"]), row["gradient_bytes"])
        seconds = sum(one["s"] for one in line["steps"][-1]["collectives"])
        self.assertGreaterEqual(row["ddp_communication_s"], seconds)

    def test_a_collective_takes_its_time_from_the_cores(self):
        _, line, _ = self.rehearse("ddp.py", 8, seconds_per_gib=1e-6, latency=1e-6, core_s=[0.004, 0])
        for step in line["steps"]:
            end = 0
            for one in step["collectives"]:
                end = max(end, one["at_s"]) + 0.004
            self.assertGreaterEqual(step["s"], end)

    def test_every_collective_has_the_shapes_and_values_of_equal_ranks(self):
        points = [[1024, 1e-4], [1 << 30, 1]]
        self.rehearse("collectives.py", 4, groups=[{"ranks": 2, "stride": 2, "all_reduce": points, "broadcast": points}])

    def test_fsdp_and_tensor_parallelism(self):
        for script, operations in (("fsdp.py", {"all_gather", "reduce_scatter"}), ("tensor_parallel.py", {"all_reduce"})):
            _, line, _ = self.rehearse(script, 4)
            self.assertEqual([line["parameters"][key] for key in ("devices", "mode")], ["4", "dtensor"])
            self.assertLessEqual(operations, {one["op"] for one in line["steps"][-1]["collectives"]})
            for step in line["steps"]:
                for one in step["collectives"]:
                    self.assertGreaterEqual(step["s"], one["at_s"] + one["s"])
                    self.assertGreaterEqual(one["waited_s"], one["at_s"])
            self.samples_file.unlink()

    def test_groups_of_a_mesh_have_their_own_times(self):
        kinds = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
        points = {kind: [[1024, 0.002], [1 << 30, 0.002]] for kind in kinds}
        groups = [{"ranks": 2, "stride": 1} | points, {"ranks": 4, "stride": 2} | points]
        _, line, _ = self.rehearse("mesh.py", 8, latency=0.05, groups=groups)
        calls = line["steps"][-1]["collectives"]
        self.assertEqual({(one["op"], one["ranks"], one["stride"], one["s"]) for one in calls},
                         {("all_reduce", 2, 1, 0.002), ("all_gather", 4, 2, 0.002), ("reduce_scatter", 4, 2, 0.002)})

    def test_groups_without_times_are_refused(self):
        (self.folder / "costs.json").write_text('{"world": 8}')
        self.bench(torchrun("mesh.py"), "--rehearse", self.folder / "costs.json")
        self.assertIn("the cost table has no group of 2 ranks, 1 apart", self.row()["error_message"])

    def test_pipelines_and_experts_are_refused(self):
        calls = ("dist.all_to_all_single(y, x)", "dist.all_to_all(list(y.chunk(4)), list(x.chunk(4)))", "dist.send(x, 1)",
                 "dist.irecv(y, 1)", "dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1)])")
        script = self.folder / "sends.py"
        for call in calls:
            script.write_text("import torch, torch.distributed as dist\ndist.init_process_group('gloo')\n"
                              f"x, y = torch.ones(8), torch.ones(8)\n{call}\n")
            costs = self.folder / "costs.json"
            costs.write_text('{"world": 4}')
            self.bench(torchrun(script), "--rehearse", costs)
            self.assertIn("a rehearsal has no send", self.row()["error_message"], call)

    def test_a_script_without_a_group_is_told_so(self):
        costs = self.folder / "costs.json"
        costs.write_text('{"world": 4}')
        self.bench(torchrun("plain.py"), "--rehearse", costs)
        self.assertIn("group of 1 rank, not of 4", self.row()["error_message"])

    @unittest.skipUnless(has("transformers") and has("accelerate"), "no transformers and accelerate")
    def test_hugging_face_trainer(self):
        _, line, _ = self.rehearse("trainer.py", 8)
        self.assertEqual(line["parameters"]["devices"], "8")

    @unittest.skipUnless(has("accelerate"), "no accelerate")
    def test_accelerate(self):
        _, line, _ = self.rehearse("accelerated.py", 8)
        self.assertEqual(line["parameters"]["devices"], "8")


@needs_torch
class LoaderWorkers(Measured):
    """Numbers of loader workers that take turns in one training run."""

    def turns(self, command, *options, numbers="0,1", seconds=1.5, **environment):
        """Returns the rows by number of workers, each with its line of samples."""
        bench, samples = self.folder / "bench.json", self.folder / "samples.jsonl"
        done = programs.run("script_bench", "--workers", numbers, "--rounds", 2, "--case-budget", seconds, *options,
                            f"--benchmark_out={bench}", "--samples-file", samples, "--", *command, timeout=240,
                            **environment)
        self.assertEqual(done.code, 0, done)
        rows = json.loads(bench.read_text())["benchmarks"]
        lines = [json.loads(line) for line in samples.read_text().splitlines()]
        found = {}
        for row, line in zip(rows, lines, strict=True):
            found.setdefault(int(line["parameters"]["workers"]), []).append((row, line))
        return found

    def check(self, command, batch, *options, own=0, **environment):
        found = self.turns(command, *options, **environment)
        self.assertLessEqual({0, 1}, set(found))
        for workers, turns in found.items():
            for row, line in turns:
                self.assertEqual(line["parameters"]["global_batch"], str(batch))
                self.assertEqual(line["parameters"]["own"], "1" if workers == own else "0")
                self.assertGreaterEqual(len(line["seconds"]), 3)
            self.assertEqual(any("bytes_per_worker" in row for row, _ in turns), workers > 0)
        return found

    def rate(self, turns):
        return statistics.median(row["samples_per_s"] for row, _ in turns)

    def test_workers_hide_the_time_of_slow_samples(self):
        found = self.turns([PYTHON, SCRIPTS / "slow_samples.py"], numbers="0,4", seconds=3)
        self.assertGreater(self.rate(found[4]), 2 * self.rate(found[0]))  # 42 ms to about 10 ms
        self.assertTrue(any("alone_samples_per_s" in row for row, _ in found[4]))
        self.assertTrue(all(row["first_batch_s"] > 0 for row, _ in found[0] + found[4]))

    def test_epochs_may_end_within_a_turn(self):
        self.check([PYTHON, SCRIPTS / "slow_samples.py"], 64, BATCHES="7")

    def test_the_scripts_own_number_takes_part(self):
        found = self.check([PYTHON, SCRIPTS / "workers.py"], 64, own=2)
        self.assertIn(2, found)

    def test_samples_may_be_made_by_modules_and_workers_spawned(self):
        self.check([PYTHON, SCRIPTS / "module_transform.py"], 64)

    def test_streams(self):
        self.check([PYTHON, SCRIPTS / "iterable.py"], 64)

    def test_gradient_accumulation(self):
        self.check([PYTHON, SCRIPTS / "accumulation.py"], 4 * 64)

    def test_ranks_change_at_the_same_steps(self):
        self.check([word if word != "{n}" else "2" for word in torchrun("ddp.py")], 128)

    @unittest.skipUnless(has("transformers") and has("accelerate"), "no transformers and accelerate")
    def test_hugging_face_trainer(self):
        self.check([PYTHON, SCRIPTS / "trainer.py"], 128)

    @unittest.skipUnless(has("lightning"), "no lightning")
    def test_lightning(self):
        self.check([PYTHON, SCRIPTS / "lightning_module.py"], 128)

    @unittest.skipUnless(has("accelerate"), "no accelerate")
    def test_accelerate(self):
        self.check([PYTHON, SCRIPTS / "accelerated.py"], 64)

    def test_another_loader_can_be_chosen(self):
        script = self.folder / "two_loaders.py"
        script.write_text(
            "import sys, torch\nsys.path.insert(0, %r)\nimport parts\nnet = parts.model()\n"
            "optimizer = torch.optim.SGD(net.parameters(), lr=0.01)\n"
            "def loader(batch, workers): return torch.utils.data.DataLoader(parts.data(), batch, num_workers=workers)\n"
            "first, second = loader(64, 0), loader(32, 1)\n"
            "for _ in range(99):\n    for (x, y), (u, v) in zip(first, second):\n        optimizer.zero_grad()\n"
            "        parts.loss_of(net(x), y).backward()\n        optimizer.step()\n" % str(SCRIPTS))
        self.check([PYTHON, script], 64)
        (self.folder / "samples.jsonl").unlink()
        self.check([PYTHON, script], 32, "--loader", 2, own=1)

    def test_a_script_without_a_loader_is_told_so(self):
        done = programs.run("script_bench", "--workers", "0,1", "--case-budget", 1, "--", PYTHON,
                            SCRIPTS / "no_loader.py", timeout=100)
        self.assertEqual(done.code, 3, done)
        self.assertIn("no batch came from a torch.utils.data.DataLoader", done.err)


@needs_torch
class Ends(Measured):
    def test_a_script_that_swallows_systemexit_is_ended(self):
        self.measure([PYTHON, SCRIPTS / "stubborn.py"])

    def test_a_script_that_ends_too_soon(self):
        self.assertIn("after 3 steps", self.error([PYTHON, SCRIPTS / "short.py"]))

    def test_ranks_without_a_process_group(self):
        self.assertIn("group of 1 rank", self.error(torchrun("plain.py"), devices=2))

    def test_a_number_of_ranks_in_the_script(self):
        command = [word if word != "{n}" else "2" for word in torchrun("ddp.py")]
        self.assertIn("group of 2 ranks", self.error(command))

    def test_a_script_without_training(self):
        script = self.folder / "none.py"
        script.write_text("import torch\n")
        self.assertIn("no step", self.error([PYTHON, script]))

    def test_a_script_that_fails_is_quoted(self):
        script = self.folder / "bad.py"
        script.write_text("import torch\nraise ValueError('the data is missing')\n")
        self.assertIn("the data is missing", self.error([PYTHON, script]))

    def test_a_failing_hook_never_reaches_the_script(self):
        script = self.folder / "odd.py"
        script.write_text(
            "import pathlib, sys, torch\nsys.path.insert(0, %r)\n"
            "torch.get_num_threads = lambda: 1 / 0\nimport own_timer, short\n"
            "pathlib.Path(%r).write_text('done')\n" % (str(SCRIPTS), str(self.folder / "done")))
        (self.folder / "out").mkdir()
        subprocess.run([PYTHON, script], check=True, timeout=200, env=os.environ | {
            "HOWMANY_SCRIPT_OUT": str(self.folder / "out"), "PYTHONPATH": str(programs.BIN / "howmany_hook.zip")})
        self.assertEqual((self.folder / "done").read_text(), "done")
        self.assertIn("ZeroDivisionError", next((self.folder / "out").glob("rank0.*")).read_text())

    def test_a_script_whose_hook_failed_is_ended(self):
        script = self.folder / "odd.py"
        script.write_text("import time, torch\ntorch.get_num_threads = lambda: 1 / 0\n"
                          "model = torch.nn.Linear(2, 2)\noptimizer = torch.optim.SGD(model.parameters())\n"
                          "while True:\n    model(torch.ones(1, 2)).sum().backward()\n    optimizer.step()\n"
                          "    time.sleep(0.01)\n")
        start = time.monotonic()
        self.assertIn("ZeroDivisionError", self.error([PYTHON, script]))
        self.assertLess(time.monotonic() - start, 150)  # of 200 s until it counts as hung

    def test_an_interrupt_ends_all_ranks(self):
        process = subprocess.Popen(
            [programs.BIN / "script_bench", "--devices", "cpu:0,cpu:1", "--case-budget", "60", "--",
             *torchrun("ddp.py")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        end = time.monotonic() + 120
        while len(ranks := processes.ranks_below(process.pid)) < 2 and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(len(ranks), 2)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130)
        self.assertEqual([pid for pid in ranks.values() if processes.alive(pid)], [])


if __name__ == "__main__":
    programs.main()
