# SPDX-License-Identifier: Apache-2.0
# labels: process torch
# timeout: 600
"""Tests the memory of a step of real PyTorch scripts (script_bench --count-memory), against PyTorch's own MemTracker,
and the model of PyTorch's GPU allocator."""

import os
import subprocess

import programs
from torch_scripts import GRADIENT_BYTES, PYTHON, SCRIPTS, Measured, needs_torch

MODEL_OF_ALLOCATOR = """
import random
from howmany_hook.memory import CachingAllocator

MIB = 1 << 20

def reserved(*sizes):
    allocator = CachingAllocator()
    for key, size in enumerate(sizes):
        allocator.allocate(key, size)
    return allocator.reserved / MIB

assert reserved(1) == reserved(*[MIB // 2] * 4) == 2, "small blocks share segments of 2 MiB"
assert reserved(*[MIB // 2] * 5) == 4
assert reserved(MIB + 1) == reserved(*[5 * MIB] * 4) == 20, "medium ones segments of 20 MiB"
assert reserved(*[9 * MIB] * 3) == 40
assert reserved(10 * MIB) == 10 and reserved(11 * MIB) == 12, "large ones have their own, in units of 2 MiB"
one = CachingAllocator()
one.allocate(0, 30 * MIB)
one.free(0)
for key in (1, 2, 3):
    one.allocate(key, 10 * MIB)
assert one.reserved == 30 * MIB, "a free segment is divided"
one.free(1), one.free(3), one.free(2)
one.allocate(4, 30 * MIB)
assert (one.reserved, one.allocated, one.peak) == (30 * MIB, 30 * MIB, 30 * MIB), "and merged again"
one.free(4)
one.allocate(5, 29 * MIB + 1)
assert one.allocated == 30 * MIB, "a remainder of up to 1 MiB stays with its block"

for seed in range(1000):
    source, some, alive = random.Random(seed), CachingAllocator(), {}
    for key in range(60):
        if alive and source.random() < 0.45:
            some.free(gone := source.choice(list(alive)))
            del alive[gone]
        else:
            alive[key] = source.randint(1, 40 * MIB) >> source.randint(0, 16)
            some.allocate(key, alive[key])
        assert sum(alive.values()) <= some.allocated <= some.peak <= some.reserved, seed
    for key in alive:
        some.free(key)
    assert some.allocated == 0, seed
    held = some.reserved
    assert sum(block[0] for pool in (some._small, some._large) for block in pool._free) == held, seed
"""


@needs_torch
class Memory(Measured):
    def memory(self, command, *arguments):
        row, line, _ = self.measure(command, "--count-memory", *arguments)
        self.samples_file.unlink()
        return row, line

    def test_parameters_gradients_and_optimizer_are_exact(self):
        row, line = self.memory([PYTHON, SCRIPTS / "plain.py"])
        self.assertEqual([row["parameter_bytes"], row["gradient_bytes"], row["optimizer_bytes"]],
                         [GRADIENT_BYTES, GRADIENT_BYTES, 0])
        self.assertGreater(row["reserved_bytes"], row["peak_bytes_per_device"])
        self.assertEqual(line["parameters"]["device"], "cpu")

    def test_the_peak_is_that_of_pytorchs_memtracker(self):
        for kind in ("plain", "wide", "adam") if programs.NIGHTLY else ("adam",):
            row, _ = self.memory([PYTHON, SCRIPTS / "tracked.py", kind])
            done = subprocess.run([PYTHON, SCRIPTS / "tracked.py", kind, "own"], capture_output=True, text=True, check=True,
                                  env={**os.environ, "OMP_NUM_THREADS": "1"})
            self.assertAlmostEqual(row["peak_bytes_per_device"] / float(done.stdout.split()[-1]), 1, delta=0.02, msg=kind)

    @programs.nightly
    def test_data_on_the_host_do_not_count(self):
        row, _ = self.memory([PYTHON, SCRIPTS / "sliced.py"])
        self.assertLess(row["peak_bytes_per_device"], 3 * GRADIENT_BYTES)

    def test_fsdp_divides_the_state_over_ranks_that_are_not_there(self):
        costs = self.folder / "costs.json"
        costs.write_text('{"world": 4, %s}' % ", ".join(
            f'"{kind}": [[1024, 1e-9], [1073741824, 2e-9]]'
            for kind in ("all_reduce", "reduce_scatter", "all_gather", "broadcast")))
        torchrun = [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "{n}", SCRIPTS / "fsdp.py"]
        row, _ = self.memory(torchrun, "--rehearse", costs)
        for name, copies in (("parameter_bytes", 1), ("gradient_bytes", 1), ("optimizer_bytes", 2)):
            self.assertAlmostEqual(row[name] / (copies * GRADIENT_BYTES), 0.25, delta=0.005, msg=name)

    def test_the_model_of_the_allocator(self):
        subprocess.run([PYTHON, "-c", MODEL_OF_ALLOCATOR], check=True,
                       env={**os.environ, "PYTHONPATH": str(programs.BIN / "howmany_hook.zip")})


if __name__ == "__main__":
    programs.main()
