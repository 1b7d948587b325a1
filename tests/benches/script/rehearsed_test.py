# SPDX-License-Identifier: Apache-2.0
# labels: process torch
# timeout: 1500
"""Real PyTorch scripts in a group of more ranks than there are."""

import json
import unittest

import programs
from torch_scripts import GRADIENT_BYTES, Measured, has, needs_torch, torchrun


@needs_torch
class Rehearsed(Measured):
    def rehearse(self, script, world, seconds_per_gib=1.0, latency=1e-4, devices=1, **more):
        costs = self.folder / "costs.json"
        points = [[1024, latency], [1 << 30, latency + seconds_per_gib]]
        kinds = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
        costs.write_text(json.dumps({"world": world} | {kind: points for kind in kinds} | more))
        return self.measure([*torchrun(script)], "--rehearse", costs, devices=devices)

    @programs.nightly
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
        self.assertNotIn("why", line)

    @programs.nightly
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
        for script, mode, operations in (("fsdp.py", "fsdp", {"all_gather", "reduce_scatter"}),
                                         ("tensor_parallel.py", "dtensor", {"all_reduce"})):
            _, line, _ = self.rehearse(script, 4)
            self.assertEqual([line["parameters"][key] for key in ("devices", "mode")], ["4", mode])
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

    @programs.nightly
    def test_groups_without_times_are_refused(self):
        (self.folder / "costs.json").write_text('{"world": 8}')
        self.bench(torchrun("mesh.py"), "--rehearse", self.folder / "costs.json")
        self.assertIn("the cost table has no group of 2 ranks, 1 apart", self.row()["error_message"])

    def test_pipelines_and_experts_are_refused(self):
        calls = ("dist.all_to_all_single(y, x)", "dist.all_to_all(list(y.chunk(4)), list(x.chunk(4)))", "dist.send(x, 1)",
                 "dist.irecv(y, 1)", "dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1)])")
        script = self.folder / "sends.py"
        for call in calls if programs.NIGHTLY else calls[::3]:
            script.write_text("import torch, torch.distributed as dist\ndist.init_process_group('gloo')\n"
                              f"x, y = torch.ones(8), torch.ones(8)\n{call}\n")
            costs = self.folder / "costs.json"
            costs.write_text('{"world": 4}')
            self.bench(torchrun(script), "--rehearse", costs)
            self.assertIn("a rehearsal has no send", self.row()["error_message"], call)

    @programs.nightly
    def test_a_script_without_a_group_is_told_so(self):
        costs = self.folder / "costs.json"
        costs.write_text('{"world": 4}')
        self.bench(torchrun("plain.py"), "--rehearse", costs)
        self.assertIn("group of 1 rank, not of 4", self.row()["error_message"])

    @programs.nightly
    @unittest.skipUnless(has("transformers") and has("accelerate"), "no transformers and accelerate")
    def test_hugging_face_trainer(self):
        _, line, _ = self.rehearse("trainer.py", 8)
        self.assertEqual(line["parameters"]["devices"], "8")

    @programs.nightly
    @unittest.skipUnless(has("accelerate"), "no accelerate")
    def test_accelerate(self):
        _, line, _ = self.rehearse("accelerated.py", 8)
        self.assertEqual(line["parameters"]["devices"], "8")


if __name__ == "__main__":
    programs.main()
