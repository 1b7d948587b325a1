# SPDX-License-Identifier: Apache-2.0
# labels: process torch
# timeout: 120
"""The FLOP and bytes of single operations, which need no GPU."""

import json
import os
import subprocess

import programs
from torch_scripts import PYTHON, SCRIPTS, needs_torch

HOOK = SCRIPTS.parents[3] / "benches/script/torch_hook"


@needs_torch
class Operations(programs.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = subprocess.run([PYTHON, SCRIPTS / "operations_of_modules.py"], capture_output=True, text=True, check=True,
                              env=os.environ | {"PYTHONPATH": str(HOOK)})
        cls.found = json.loads(done.stdout.splitlines()[-1])

    def test_a_linear_layer_is_one_product_and_two_in_the_backward_pass(self):
        read = 4 * (20 * 8 + 8 * 4 + 4)
        self.assertEqual(self.found["linear"], [["addmm", "product", "f32", 2 * 20 * 8 * 4, read, 4 * 20 * 4]])
        products = [one for one in self.found["linear_backward"] if one[1] == "product"]
        self.assertEqual([one[3] for one in products], [2 * 20 * 8 * 4] * 2)

    def test_products_of_f32_are_tf32_if_the_script_allows_it(self):
        self.assertEqual(self.found["tf32"][0][2], "tf32")

    def test_a_convolution_with_groups_has_the_flop_of_its_groups(self):
        flop, x, weight, y = 2 * 2 * 100 * 16 * 4 * 9, 2 * 8 * 100, 16 * 4 * 9, 2 * 16 * 100
        self.assertEqual(self.found["convolution"],
                         [["convolution", "convolution", "f32", flop, 4 * (x + weight + 16), 4 * y]])
        backward, = self.found["convolution_backward"]
        self.assertEqual(backward, ["convolution_backward", "convolution", "f32", 2 * flop, 4 * (x + weight + y),
                                    4 * (x + weight + 16)])

    def test_a_convolution_on_tensor_cores_says_whether_they_need_another_layout(self):
        self.assertEqual([self.found[one][0][0] for one in ("nchw", "nhwc", "nhwc_weight")],
                         ["convolution_nchw", "convolution", "convolution"])

    def test_batch_norm_reads_its_input_twice(self):
        read, written = self.found["batch_norm"][-1][4:]
        self.assertEqual(read, 2 * 4 * (2 * 8 * 100 + 4 * 8))  # and weight, bias, mean, variance
        self.assertGreaterEqual(written, 4 * 2 * 8 * 100)

    def test_causal_attention_is_half_of_attention(self):
        flop = 4 * 2 * 4 * 128 * 128 * 64
        self.assertEqual(self.found["attention"][0][1:4], ["attention", "f16", flop])
        self.assertEqual(self.found["causal"][0][3], flop / 2)

    def test_layer_norm_has_bytes_only(self):
        self.assertEqual(self.found["layer_norm"],
                         [["native_layer_norm", "memory", "f32", 0, 4 * (64 + 32), 4 * (64 + 2 * 4)]])

    def test_an_embedding_reads_only_the_rows_that_it_gathers(self):
        self.assertEqual(self.found["embedding"], [["embedding", "memory", "f32", 0, 8 * 20 + 4 * 320, 4 * 320]])

    def test_a_foreach_operation_counts_all_tensors(self):
        self.assertEqual(self.found["foreach_sgd"], [["_foreach_add_", "memory", "f32", 0, 2 * 4 * 22, 4 * 22]])

    def test_views_are_no_operations(self):
        self.assertEqual(self.found["views"], [])

    def test_an_expanded_tensor_counts_what_it_has_in_memory(self):
        self.assertEqual(self.found["expanded"], [["add", "memory", "f32", 0, 4 * 20, 4 * 2000]])


if __name__ == "__main__":
    programs.main()
