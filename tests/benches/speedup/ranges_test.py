# SPDX-License-Identifier: Apache-2.0
# labels: process
"""Tests the profiler ranges of a training run. A tool of this project counts them (see
tests/support/nvtx_recorder.cpp)."""

import unittest

import images
import programs

RECORDER = programs.BIN / "libhm_nvtx_recorder.so"
DEVICES = programs.run("howmany-devices", "--json").json()
HAS_GLOO = any(part["name"] == "gloo" and part["usable"] for part in DEVICES["backends"]["comms"])
STEPS, BATCH, SIZES = 5, 20, (16, 32, 4)
PARAMETER_BYTES = 4 * sum((a + 1) * b for a, b in zip(SIZES, SIZES[1:]))
FORWARD_FLOP = sum(2 * BATCH * a * b for a, b in zip(SIZES, SIZES[1:]))
INPUT_FLOP = 2 * BATCH * SIZES[0] * SIZES[1]  # of the input's gradient, which is not computed


@unittest.skipUnless(DEVICES["ranges"]["built"], "built without the NVTX headers")
class Ranges(programs.TestCase):
    def recorded(self, *arguments):
        """Returns {(category, name): (count, payload)} of every process of the run."""
        result = programs.run("howmany-train", "--epochs", 1, *arguments,
                              NVTX_INJECTION64_PATH=str(RECORDER),
                              HM_TEST_RANGES=str(self.folder / "ranges"))
        self.assertEqual(result.code, 0, result)
        return [self.read(path) for path in sorted(self.folder.glob("ranges.*"))]

    def read(self, path):
        found = {}
        for line in path.read_text().splitlines():
            category, name, pushes, pops, payload = line.split("\t")
            self.assertEqual(pushes, pops, line)
            found[category, name] = (int(pushes), int(payload))
        return found

    def train(self, *arguments):
        return self.recorded("--model", "mlp:sizes=" + "-".join(map(str, SIZES)), "--global-batch", BATCH,
                             "--synthetic-samples", STEPS * BATCH, *arguments)

    def test_a_step_is_forward_backward_and_optimizer(self):
        (seen,) = self.train()
        self.assertEqual(seen["step", "step"], (STEPS, STEPS * (3 * FORWARD_FLOP - INPUT_FLOP)))
        self.assertEqual(seen["step", "forward"], (STEPS, STEPS * FORWARD_FLOP))
        self.assertEqual(seen["step", "backward"], (STEPS, STEPS * (2 * FORWARD_FLOP - INPUT_FLOP)))
        self.assertEqual(seen["compute", "linear"], (2 * STEPS, STEPS * FORWARD_FLOP))
        self.assertEqual(seen["optimizer", "sgd"][0], STEPS)
        self.assertEqual(seen["data", "data wait"][0], STEPS)

    def test_loaded_bytes_are_told(self):
        (seen,) = self.train()
        sample = 4 * SIZES[0] + 8  # f32 inputs and an i64 label
        self.assertEqual(seen["data", "load batch"], (STEPS, STEPS * BATCH * sample))

    def test_workers_load_beside_the_steps(self):
        data = images.write_folder(self.folder / "set", good=8)
        (seen,) = self.recorded("--model", "resnet18:image=64,width=4,classes=2", "--global-batch", 8,
                                "--data", data, "--workers", 2)
        self.assertEqual(seen["data", "load batch"], (2, 16 * (64 * 64 * 3 * 4 + 8)))
        self.assertEqual(seen["data", "data wait"][0], 2)

    def test_copies_between_replicas_carry_their_bytes(self):
        (seen,) = self.train("--mode", "data_parallel", "--devices", "cpu:0,cpu:1",
                             "--oversubscribe")
        self.assertGreaterEqual(seen["copy", "copy"][1], PARAMETER_BYTES)
        self.assertEqual(seen["copy", "sum gradients"], (STEPS, STEPS * PARAMETER_BYTES))

    def test_collectives_of_rank_threads_carry_their_bytes(self):
        (seen,) = self.train("--mode", "ddp", "--devices", "cpu:0,cpu:1", "--oversubscribe")
        self.assert_gradients_summed(seen, ranks=2)

    @unittest.skipUnless(HAS_GLOO, "gloo was not built or cannot be used here")
    def test_collectives_of_rank_processes_carry_their_bytes(self):
        seen = self.train("--mode", "ddp", "--backend", "gloo", "--devices", "cpu:0,cpu:1",
                          "--oversubscribe")
        ranks = [one for one in seen if ("step", "step") in one]
        self.assertEqual(len(ranks), 2)
        for one in ranks:
            self.assert_gradients_summed(one, ranks=1)

    def assert_gradients_summed(self, seen, ranks):
        count, payload = seen["comm", "all_reduce"]
        self.assertGreaterEqual(count, ranks * STEPS)
        self.assertGreaterEqual(payload, ranks * STEPS * PARAMETER_BYTES)
        self.assertEqual(seen["step", "backward"][0], ranks * STEPS)


programs.main()
