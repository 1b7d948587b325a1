# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 600
"""Tests `howmany gpus --model MODEL --up-to N --cluster FILE`, where the devices of the cluster are here."""

import json
import os

import chakra
import programs
from clusters import cpu_cluster, straggler_factor

class OwnModel(programs.TestCase):
    def gpus(self, up_to, *arguments, model="mlp:sizes=16-32-4", devices="cpu:0,cpu:1", out="out", hop_us=10000,
             **environment):
        path = self.folder / "cluster.toml"
        path.write_text(cpu_cluster(latency_us=1000, hop_us=hop_us))
        self.out = self.folder / out
        return programs.run("howmany", "gpus", "--model", model, "--devices", devices,
                            "--oversubscribe", "--rounds", 2, "--time-budget", 12, "--out", self.out, "--up-to", up_to,
                            "--cluster", path, *arguments, timeout=200, **environment)

    def beyond(self, done):
        self.assertEqual(done.code, 0, done)
        return json.loads((self.out / "summary.json").read_text())["answer"]["beyond"]

    def rehearsal(self):
        rows = json.loads((self.out / "summary.json").read_text())["measurements"]
        return next(row["metrics"] for row in rows if row["suite"] == "rehearsal")

    def test_our_ddp_is_measured_and_rehearsed(self):
        done = self.gpus(16)
        beyond = self.beyond(done)
        self.assertEqual([[row["devices"] for row in beyond[kind]] for kind in ("measured", "rehearsed", "predicted")],
                         [[1, 2], [16], [4, 8]])
        rows = json.loads((self.out / "summary.json").read_text())["measurements"]
        self.assertEqual([(row["suite"], row["parameters"]["mode"], row["parameters"]["devices"]) for row in rows],
                         [("speedup", "single", "1"), ("speedup", "ddp", "1"), ("speedup", "ddp", "2"),
                          ("rehearsal", "ddp", "16")])
        self.assertEqual([rows[-1]["parameters"][key] for key in ("evidence", "backend", "global_batch")],
                         ["rehearsed", "rehearsal", str(16 * int(rows[0]["parameters"]["batch_per_device"]))])
        again = programs.run("howmany", "report", self.out)
        self.assertEqual(again.out, done.out)

    def test_the_replay_agrees_with_a_rehearsal(self):
        """Of the step, which the collectives dominate. Efficiencies would depend on the baseline of each run."""
        # A step of few collectives needs long ones, because a busy machine adds 10 ms.
        for mode, hop in (("ddp", 40000), ("sharded", 10000), ("sharded:level=2", 10000), ("tensor:ways=4", 40000)):
            with self.subTest(mode):
                asked = {"devices": "cpu:0", "hop_us": hop}
                beyond = self.beyond(self.gpus(32, "--mode", mode, out=f"of {mode}", **asked))
                replayed = beyond["predicted"][-1]
                known = self.rehearsal()
                self.assertEqual(replayed["devices"], 16)
                efficiency = replayed["efficiency"] * straggler_factor(beyond, 16)
                step = known["median_s"]["value"] * known["efficiency"]["value"] / efficiency
                self.beyond(self.gpus(16, "--mode", mode, out=f"again {mode}", **asked))
                self.assertAlmostEqual(step / self.rehearsal()["median_s"]["value"], 1, delta=0.05)

    def test_groups_of_tensor_are_rehearsed_and_replayed(self):
        mode = ("--mode", "tensor:ways=2")
        beyond = self.beyond(self.gpus(16, *mode))
        self.assertEqual([[row["devices"] for row in beyond[kind]] for kind in ("measured", "rehearsed", "predicted")],
                         [[1, 2], [16], [4, 8]])
        lines = map(json.loads, (self.out / "speedup.samples.jsonl").read_text().splitlines())
        groups = {(one["ranks"], one["stride"]) for line in lines for step in line.get("steps") or [] for one in step["collectives"]}
        self.assertEqual(groups, {(2, 1), (8, 2)})
        self.assert_refused(programs.run("howmany", "predict", self.out, "--cluster", self.folder / "cluster.toml",
                                         "--up-to", 16, "--chakra", self.folder / "trace"), "groups")
        self.assert_refused(self.gpus(7, *mode, out="odd"), "--up-to 7: groups of 2 devices do not divide it")

    def test_without_ways_each_number_is_rehearsed(self):
        beyond = self.beyond(self.gpus(8, "--mode", "tensor", devices="cpu:0"))
        self.assertEqual([row["devices"] for row in beyond["rehearsed"]], [2, 4, 8])
        self.assertEqual(beyond["predicted"], [])

    def test_each_number_of_stages_is_rehearsed(self):
        for mode, most, known in (("pipeline", 4, [4]), ("hybrid:stages=2", 8, [4, 8])):
            with self.subTest(mode):
                beyond = self.beyond(self.gpus(most, "--mode", mode, model="mlp:sizes=16-32-32-32-4", out=f"of {mode}"))
                self.assertEqual([[row["devices"] for row in beyond[kind]] for kind in ("measured", "rehearsed", "predicted")],
                                 [[1, 2], known, []])
                other = self.folder / "other.toml"
                other.write_text(cpu_cluster(latency_us=1, name="other"))
                again = programs.run("howmany", "predict", self.out, "--cluster", other, "--up-to", most, "--json")
                rows = json.loads(again.out)
                self.assertEqual(rows["rehearsed"], [])
                self.assertTrue(all("this cluster" in row["refused"] for row in rows["predicted"]))

    def test_each_number_is_rehearsed_in_strong_scaling(self):
        done = self.gpus(8, "--global-batch", 64)
        beyond = self.beyond(done)
        self.assertEqual(beyond["scaling"], "strong")
        self.assertEqual([[row["devices"] for row in beyond[kind]] for kind in ("measured", "rehearsed", "predicted")],
                         [[1, 2], [4, 8], []])
        lines = [json.loads(line)["parameters"] for line in (self.out / "speedup.samples.jsonl").read_text().splitlines()]
        self.assertEqual({(one["devices"], one["batch_per_device"]) for one in lines},
                         {("1", "64"), ("2", "32"), ("4", "16"), ("8", "8")})
        self.assertEqual(programs.run("howmany", "report", self.out).out, done.out)

    def test_its_step_is_written_as_a_chakra_trace(self):
        self.beyond(self.gpus(8, devices="cpu:0"))
        done = programs.run("howmany", "predict", self.out, "--cluster", self.folder / "cluster.toml", "--up-to", 8,
                            "--chakra", self.folder / "trace")
        self.assertEqual(done.code, 0, done)
        files = [self.folder / f"trace.{rank}.et" for rank in range(8)]
        self.assertEqual({file.read_bytes() for file in files}, {files[0].read_bytes()})
        metadata, *nodes = chakra.read(files[0])
        self.assertEqual(metadata, {1: [b"1.0.0"]})
        kinds = [node["type"] for node in nodes]
        self.assertEqual(kinds[-1], chakra.WORK)
        collectives = [node for node in nodes if node["type"] == chakra.COLLECTIVE]
        self.assertEqual({node["comm_type"] for node in collectives}, {0})  # ALL_REDUCE
        self.assertGreaterEqual(sum(node["comm_size"] for node in collectives), 4 * (16 * 32 + 32 + 32 * 4 + 4))
        self.assertIn(collectives[-1]["id"], nodes[-1]["after"])  # the step ends after the last bucket
        ends = {}
        for node in nodes:  # the nodes that it follows come before it
            ends[node["id"]] = node["us"] + max((ends[other] for other in node["after"]), default=0)
        lines = map(json.loads, (self.out / "speedup.samples.jsonl").read_text().splitlines())
        steps = sorted(step["s"] for line in lines for step in line.get("steps", []))
        self.assertAlmostEqual(max(ends.values()) * 1e-6, steps[len(steps) // 2], delta=1e-6 * len(nodes))
        self.assert_refused(programs.run("howmany", "predict", "--rates", "1=1", "--chakra", "x"), "--chakra needs")

    def test_slurms_guess_of_the_start_is_beside_each_number(self):
        sbatch = self.folder / "sbatch"
        sbatch.write_text(f'#!/bin/sh\necho "$@" >>{self.folder}/asked\n'
                          'echo "sbatch: Job 1 to start at $(date -d "+2 hours" +%Y-%m-%dT%H:%M:%S) using 1" >&2\n')
        sbatch.chmod(0o755)
        path = {"PATH": f"{self.folder}:{os.environ['PATH']}"}
        beyond = self.beyond(self.gpus(8, "--samples", "1M", "--slurm-wait", devices="cpu:0", **path))
        rows = [row for kind in ("measured", "rehearsed", "predicted") for row in beyond[kind]]
        self.assertEqual([round(row["slurm_wait_hours"]) for row in rows], [2] * len(rows))
        self.assertEqual(len((self.folder / "asked").read_text().splitlines()), len(rows))  # once, at the end

    def test_what_cannot_be_rehearsed_is_refused_before_measuring(self):
        for arguments, word in ((("--mode", "model"), "one --mode"), (("--mode", "ddp,model"), "one --mode"),
                                (("--model", "resnet18"), "one --model"), (("--global-batch", 8), "a batch of 8"),
                                (("--mode", "pipeline"), "2 layers to divide, 16 stages")):
            self.assert_refused(self.gpus(16, *arguments), word)
        self.assert_refused(self.gpus(2), "--up-to 2")
        self.assert_refused(self.gpus(16, "--slurm-wait"), "--samples")
        self.assert_refused(self.gpus(16, "--slurm-wait", "--samples", "1M", PATH=str(self.folder)), "no sbatch")
        self.assertFalse(self.out.exists())


if __name__ == "__main__":
    programs.main()
