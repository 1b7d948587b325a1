# SPDX-License-Identifier: Apache-2.0
# labels: process torch
# timeout: 600
"""The operations of a step on a GPU that is not here (torch_hook/howmany_hook/pretend.py), of real scripts."""

import json
import os
import subprocess

import programs
from torch_scripts import PYTHON, SCRIPTS, needs_torch

HOOK = SCRIPTS.parents[3] / "benches/script/torch_hook"
A100 = {"name": "NVIDIA A100", "memory": 80 << 30, "capability": [8, 0], "devices": 8}
BATCH, WIDTH, HIDDEN, CLASSES = 32, 128, 512, 10  # of pretended.py
WIDE = 2048
# Of DistributedDataParallel with real tensors, in a group of one: the sizes after the buckets were formed again.
REAL_BUCKETS = """
import os, sys, torch
sys.argv = ["pretended.py", "batches"]
sys.path.insert(0, os.path.dirname(sys.argv[0]) or ".")
os.environ.update(MASTER_ADDR="127.0.0.1")
store = torch.distributed.HashStore()
torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
model = torch.nn.Sequential(torch.nn.Linear(128, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10))
model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1)
model._set_ddp_runtime_logging_sample_rate(1)
for _ in range(3):
    model(torch.randn(32, 128)).sum().backward()
sizes = model._get_ddp_logging_data()["rebuilt_bucket_sizes"]
print([int(one) for one in sizes.split(",")])
"""


@needs_torch
class Counted(programs.TestCase):
    def count(self, kind, ranks=1, **device):
        out = self.folder / kind
        out.mkdir(exist_ok=True)
        place = {"HOWMANY_SCRIPT_OUT": str(out), "HOWMANY_SCRIPT_COUNT": json.dumps(A100 | device), "PYTHONPATH": str(HOOK)}
        if ranks > 1:
            costs = self.folder / "costs.json"
            costs.write_text(json.dumps({"world": ranks}))
            place |= {"HOWMANY_SCRIPT_REHEARSE": str(costs), "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1",
                      "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}  # fmt: skip
        code = ("import resource, runpy, sys, atexit\n"
                "atexit.register(lambda: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))\n"
                "del sys.argv[0]\nrunpy.run_path(sys.argv[0], run_name='__main__')")
        done = subprocess.run([PYTHON, "-c", code, SCRIPTS / "pretended.py", kind], capture_output=True, text=True,
                              env=os.environ | place, check=False, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.resident = 1024 * int(done.stdout.split()[-1])
        lines = [json.loads(line) for path in out.glob("rank*.jsonl") for line in path.read_text().splitlines()]
        return next(line for line in lines if line["kind"] == "counted")

    def kinds(self, count):
        return [count["kinds"][place] for place in count["order"] if place >= 0]

    def products(self, count, phase):
        return [one for one in self.kinds(count) if one["work"] == "product" and one["phase"] == phase]

    def test_a_script_sees_the_gpu_and_its_mixed_precision(self):
        count = self.count("mixed")
        forward, backward = self.products(count, "forward"), self.products(count, "backward")
        first, second = 2 * BATCH * WIDTH * HIDDEN, 2 * BATCH * HIDDEN * CLASSES
        self.assertEqual([one["flop"] for one in forward], [first, second])
        self.assertEqual(sorted(one["flop"] for one in backward), [second, second, first])  # the input has no gradient
        self.assertEqual({one["dtype"] for one in forward + backward}, {"f16"})
        self.assertEqual((count["samples"], count["world"], count["collectives"], count["refused"]), (BATCH, 1, [], None))
        parameters = 4 * (WIDTH * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES)
        self.assertEqual([size for _, size in count["gradients"]],
                         [4 * CLASSES, 4 * CLASSES * HIDDEN, 4 * HIDDEN, 4 * HIDDEN * WIDTH])
        memory = count["memory"]
        self.assertEqual((memory["parameters"], memory["gradients"]), (parameters, parameters))
        self.assertGreaterEqual(memory["optimizer"], 2 * parameters)
        self.assertEqual((count["loader"]["samples"], count["loader"]["workers"]), (BATCH, 2))
        self.assertIn("_foreach_addcdiv_", {one["op"] for one in self.kinds(count) if one["phase"] == "optimizer"})

    def test_real_and_without_values_have_the_same_operations(self):
        def operations(real):
            return [(one["op"], one["dtype"], one["flop"], one["read"], one["phase"])
                    for one in self.kinds(self.count("mixed", real=real))]  # fmt: skip

        self.assertEqual(operations(True), operations(False))

    def test_known_values_stay_known(self):
        self.assertEqual(self.count("values")["answered"], {})

    def test_what_scripts_call_beside_their_model_works(self):
        self.assertIsNone(self.count("calls")["refused"])

    def test_one_step_is_not_enough(self):
        self.assertIn("after its first step", self.count("once")["refused"])

    def test_a_shape_that_depends_on_values_is_refused_unless_real(self):
        with self.assertRaisesRegex(AssertionError, "the shape of _unique2 depends on values"):
            self.count("shapes")
        self.assertEqual(self.count("shapes", real=True)["way"], "real")

    def test_ddp_sends_the_buckets_of_pytorch(self):
        done = subprocess.run([PYTHON, "-c", REAL_BUCKETS], capture_output=True, text=True, check=True)
        count = self.count("ddp", ranks=8)
        sums = [one for one in count["collectives"] if one["bytes"] > 4]
        self.assertEqual([one["bytes"] for one in sums], json.loads(done.stdout.splitlines()[-1]))
        self.assertEqual({(one["op"], one["ranks"], "waited" in one) for one in sums}, {("all_reduce", 8, False)})
        self.assertEqual((count["parallel"], count["world"]), ("ddp", 8))

    def test_fsdp_gathers_before_it_computes_and_divides_the_state(self):
        count = self.count("fsdp", ranks=8)
        rows = -(-CLASSES // 8)  # of the last layer, in rank 0
        own = 4 * ((WIDTH + 1) * WIDE // 8 + (WIDE + 1) * rows)
        self.assertEqual(count["memory"]["parameters"], own)
        gathers = [one for one in count["collectives"] if one["op"] == "all_gather"]
        scatters = [one for one in count["collectives"] if one["op"] == "reduce_scatter"]
        self.assertEqual((len(gathers), len(scatters)), (4, 2))
        for one in gathers:
            self.assertGreater(one["waited"], count["order"].index(-1 - count["collectives"].index(one)))
        updated = [one["written"] for one in self.kinds(count) if one["op"] == "_foreach_addcdiv_"]
        self.assertEqual(sum(updated), own)

    def test_a_model_larger_than_the_memory_is_counted(self):
        count = self.count("large")
        parameters = 4 * (32_000 * 4096 + 120 * 4096**2)  # 8.6 GB
        self.assertEqual(count["memory"]["parameters"], parameters)
        self.assertLess(self.resident, parameters / 4)


if __name__ == "__main__":
    programs.main()
