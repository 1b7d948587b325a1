# SPDX-License-Identifier: Apache-2.0
# labels: process torch
# timeout: 1500
"""The samples and the steps of training loops of many kinds (scripts/variants.py)."""

import os
import subprocess

import programs
from torch_scripts import PYTHON, SCRIPTS, Measured, needs_torch, torchrun

BY_BACKWARD = "a step is a backward pass: no torch.optim step was seen"
NO_EXCHANGE = "no gradients were exchanged in the timed steps"
SETTLING = "the samples of a step still changed"


BATCHES = """
import dataclasses, torch
from howmany_hook.batch import samples_in, samples_of_call
from torch.nn.utils.rnn import pack_sequence

def of(*shape):
    return torch.zeros(shape)

class Graphs:
    num_graphs = 5
    def __init__(self):
        self.x = of(90, 7)

@dataclasses.dataclass
class Pair:
    image: torch.Tensor
    label: torch.Tensor

expected = [
    (of(8, 3), 8), ([of(8, 3, 32, 32), of(8)], 8), ({"x": of(8, 3), "y": {"z": of(8, 9)}}, 8),
    ([[of(3, 32, 40), of(3, 50, 20)], [{"boxes": of(4, 4)}, {"boxes": of(1, 4)}]], 2),  # detection
    ([of(3, 32, 40), of(3, 50, 20), of(3, 9, 9)], 3), ([of(3, 32, 32)] * 6, 6),
    ([[of(8, 3, 32, 32), of(8, 3, 32, 32)], of(8)], 8),  # two views
    ([of(8, 3, 64, 64)] * 2 + [of(8, 3, 32, 32)] * 6, 8),  # crops of two sizes
    ([{"image": of(3, 32, 40), "id": 7}, {"image": of(3, 9, 9), "id": 8}], 2),
    ([of(7, 16), of(9, 16), of(4, 16)], 3),  # sequences of different lengths
    (pack_sequence([of(9, 16), of(7, 16), of(4, 16)]), 3), (Graphs(), 5), ([Graphs(), of(5)], 5),
    (Pair(of(8, 3, 32, 32), of(8)), 8), ((), 0), ({"text": ["a", "b"]}, 0), (of(), 0), (None, 0),
]
for batch, samples in expected:
    assert samples_in(batch) == samples, (batch, samples_in(batch), samples)
state = of(2, 20, 64), of(2, 20, 64)
calls = [
    ([of(16, 20).long(), state], {}, 20), ([of(9, 5, 64), of(7, 5, 64)], {}, 5),  # the batch is second
    ([of(8, 16).long(), of(16, 16).bool()], {}, 8), ([of(8, 16), of(5, 16)], {}, 8), ([of(8, 16)], {}, 8), ([], {"x": of(8, 3, 32, 32)}, 8), ([of(8, 16), of(8, 9)], {}, 8), ([of(8, 16), None], {"mask": of(16, 16)}, 8),
    ([[of(3, 32, 40), of(3, 50, 20)], [{"boxes": of(4, 4)}, {"boxes": of(1, 4)}]], {}, 2), ([[of(7, 16), of(9, 16), of(4, 16)]], {}, 3),
    ([Graphs()], {}, 5), ([of(90, 7), of(2, 120), of(90)], {}, 90), ([], {}, 0), ([of()], None, 0),
]
for args, kwargs, samples in calls:
    assert samples_of_call(args, kwargs) == samples, (args, kwargs, samples_of_call(args, kwargs), samples)
"""


@needs_torch
class Variants(Measured):
    def batch(self, name, samples, *flags, devices=1, command=None, seconds=0.3):
        command = command or [*(torchrun("variants.py") if devices > 1 else [PYTHON, SCRIPTS / "variants.py"]), name]
        with self.subTest(name):
            row, line, _ = self.measure(command, devices=devices, seconds=seconds)
            self.samples_file.unlink()
            self.assertEqual(line["parameters"]["global_batch"], str(samples))
            self.assertEqual([flag for flag in flags if flag not in line["flags"]], [])
            return row, line

    def test_samples_of_batches(self):
        subprocess.run([PYTHON, "-c", BATCHES], check=True, timeout=200,
                       env=os.environ | {"PYTHONPATH": str(programs.BIN / "howmany_hook.zip")})

    def test_loaders(self):
        for name in ("new_data_sets", "validation_with_more_batches", "infinite_loader"):
            row, _ = self.batch(name, 64)
            self.assertIn("data_wait_fraction", row)

    def test_inputs_of_the_model_show_the_batch(self):
        for name in ("own_iterator", "trial_before_training", "keyword_inputs"):
            self.batch(name, 64, "data wait not visible")
        self.batch("rebatched", 64)
        self.batch("lists_of_images", 8)
        self.batch("graphs", 16)

    def test_the_inputs_count_if_one_rank_reads_for_all(self):
        self.batch("one_rank_reads", 128, devices=2)

    def test_steps_are_timed_after_accumulation_has_grown(self):
        self.batch("growing_accumulation", 256, seconds=3)

    def test_steps_are_timed_after_the_batch_has_grown(self):
        _, line = self.batch("growing_batches", 64, seconds=2)
        self.assertNotIn(SETTLING, line["flags"])

    def test_the_rate_is_that_of_whole_cycles(self):
        row, line = self.batch("rollouts", 64)
        self.assertGreaterEqual(row["cycles"], 1)
        self.assertEqual(len(line["seconds"]), row["cycles"])
        self.assertLess(row["samples_per_s"], 8 * 64 / 0.5)
        self.assertGreater(row["between_steps_fraction"], 0.1)

    def test_a_group_that_exchanges_nothing(self):
        for name in ("exchanges_nothing", "logs_now_and_then"):
            self.batch(name, 128, NO_EXCHANGE, devices=2)
        for name in ("averages_gradients", "averages_in_backward", "local_sgd", "sends_to_a_neighbour", "same_gradients"):
            _, line = self.batch(name, 128, devices=2)
            self.assertNotIn(NO_EXCHANGE, line["flags"], name)

    def test_backward_passes_are_steps_without_an_optimizer(self):
        row, _ = self.batch("manual_updates", 64, BY_BACKWARD)
        self.assertGreater(row["gradient_bytes"], 0)
        self.batch("gradients_of_a_function", 64, BY_BACKWARD)

    def test_backward_passes_within_others_are_no_passes(self):
        self.batch("reentrant", 128, devices=2)

    def test_ranks_that_the_script_starts(self):
        _, line = self.batch("spawns", 128, devices=2, command=[PYTHON, SCRIPTS / "variants.py", "spawns", "{n}"])
        self.assertEqual(line["parameters"]["mode"], "ddp")

    def test_ddp_is_put_around_all_models_that_train(self):
        for name in ("two_models", "a_model_that_steps_later"):
            row, line, _ = self.measure([*torchrun("variants.py"), name], "--try-ddp", devices=2, seconds=0.3)
            self.assertEqual(row["wrapped_fraction"], 1, name)
            self.assertEqual(line["parameters"]["global_batch"], "128", name)
            self.samples_file.unlink()

    def test_a_short_script_is_measured_with_the_steps_it_has(self):
        command = [PYTHON, SCRIPTS / "variants.py", "ends_by_itself"]
        _, line, _ = self.measure(command, seconds=100)
        self.assertIn("the script ended before the time for its steps", line["flags"])
        self.assertEqual(line["parameters"]["global_batch"], "64")


if __name__ == "__main__":
    programs.main()
