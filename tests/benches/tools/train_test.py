# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only
# timeout: 300
"""Tests `howmany train` on the command line: losses do not depend on how the work is divided."""

import os
import signal
import struct
import subprocess
import unittest

import processes
import programs


def train(*arguments, **environment):
    return programs.run("howmany-train", *arguments, timeout=120, **environment)


def process_backends():
    told = train("--backend", "nothing").err
    return [name for name in ("gloo", "mpi") if name in told]


def has_gloo():
    return "gloo" in process_backends()


def losses(*arguments):
    """Returns the mean loss of each epoch of `howmany train` with these arguments."""
    done = train(*arguments, "--json")
    assert done.code == 0, done
    return [epoch["mean_loss"] for epoch in done.json()["epochs"]]


class Train(programs.TestCase):
    def same_losses(self, *arguments, layers):
        want = losses(*arguments)
        self.assertEqual(len(want), 2)
        self.assertLess(want[1], want[0])
        ways = [(mode, "local") for mode in ("data_parallel", "model", "ddp", "sharded", "pipeline", "hybrid")]
        ways += [(mode, backend) for mode in ("ddp", "sharded", "pipeline", "hybrid")
                 for backend in process_backends()]
        for mode, backend in ways:
            for n in (1, 2, 3):
                if n > layers and mode in ("model", "pipeline", "hybrid"):
                    continue
                got = losses(*arguments, "--mode", mode, "--backend", backend, "--devices", f"cpu:0-{n - 1}",
                             "--oversubscribe", "--timeout", 100)  # mpirun is slow to start on a busy machine
                for a, b in zip(got, want, strict=True):
                    self.assertAlmostEqual(a, b, delta=2e-5, msg=f"{mode} {backend} {n}")

    def test_the_plain_example_is_the_same_in_every_mode(self):
        self.same_losses(layers=1)

    def test_a_ragged_last_batch_is_the_same_in_every_mode(self):
        self.same_losses("--model", "mlp:sizes=12-16-9-5", "--synthetic-samples", 53, "--global-batch", 16,
                         "--momentum", 0.9, layers=3)

    def test_tokens_of_a_file_train_a_language_model(self):
        path = self.folder / "tokens.bin"
        path.write_bytes(struct.pack("<481H", *[i * i % 17 for i in range(481)]))
        model = "gpt2:width=16,layers=1,heads=2,length=12,vocabulary="
        tokens = ("--data", path, "--global-batch", 8, "--epochs", 2, "--momentum", 0.9)
        want = losses("--model", model + "17", *tokens)
        self.assertLess(want[1], want[0])
        for mode in ("ddp", "pipeline"):
            got = losses("--model", model + "17", *tokens, "--mode", mode, "--backend", "local", "--devices", "cpu:0-1",
                         "--oversubscribe")
            for a, b in zip(got, want, strict=True):
                self.assertAlmostEqual(a, b, delta=2e-5, msg=mode)
        few = train("--model", model + "13", *tokens)
        self.assertNotEqual(few.code, 0)
        self.assertIn("the vocabulary has 13", few.err)
        self.assert_refused(train("--model", "embedding_rnn:length=12", *tokens), "labels of i64 [12]")

    def test_one_epoch_is_one_line(self):
        done = train("--epochs", 1)
        self.assertRegex(done.out, r"^Epoch 1, Loss: \d+\.\d{4}\n$")
        self.assertEqual((done.code, done.err), (0, ""))

    def test_more_samples_than_memory_has_numbers_for(self):
        for ranks in ((), ("--mode", "ddp", "--backend", "local", "--devices", "cpu:0,cpu:1", "--oversubscribe")):
            done = train("--synthetic-samples", 99999999999999, *ranks)
            self.assert_refused(done, "the order of 99999999999999 samples is", "more than the memory here")

    def test_options_that_would_change_nothing(self):
        self.assert_refused(train("--data", self.folder, "--synthetic-samples", 5), "--synthetic-samples", "own size")
        self.assert_refused(train("--on-bad-image", "skip"), "--on-bad-image", "synthetic", "give --data")

    def test_seeds_differ(self):
        self.assertNotEqual(train("--seed", 1).out, train("--seed", 2).out)

    def test_json_tells_what_ran(self):
        told = train("--json", "--mode", "ddp", "--devices", "cpu:0").json()
        self.assertEqual([e["samples"] for e in told["epochs"]], [100, 100])
        self.assertEqual((told["mode"], told["devices"]), ("ddp", ["cpu:0"]))
        self.assertFalse(told["interrupted"])

    def test_memory_does_not_grow_over_epochs(self):
        epochs = train("--json", "--epochs", 12, "--optimizer", "adamw").json()["epochs"]
        bytes_in_use = [epoch["bytes_in_use"] for epoch in epochs]
        self.assertGreater(bytes_in_use[0], 0)
        self.assertLessEqual(max(bytes_in_use), bytes_in_use[1])

    def test_bad_usage_is_one_line_and_2(self):
        self.assert_refused(train("--mode", "dpp"), "dpp", "ddp")
        self.assert_refused(train("--model", "mpl"), "mpl", "mlp")
        self.assert_refused(train("--backend", "lokal"), "lokal", "local")
        self.assert_refused(train("--devices", "gpu:0"), "gpu:0")
        self.assert_refused(train("--moed", "ddp"), "--moed", "--mode")
        self.assert_refused(train("--devices", "cpu:0-9", "--mode", "ddp", "--global-batch", 3,
                                  "--oversubscribe"), "3", "10 devices")
        self.assert_refused(train("--devices", "cpu:0-900", "--mode", "ddp", "--global-batch", 2000),
                            "--oversubscribe")
        self.assert_refused(train("--data", self.folder / "none", "--model", "resnet18"), "none")

    def test_a_loss_that_is_not_finite_is_one_line_and_3(self):
        line = "howmany-train: the loss is not finite from epoch 1 on: a lower --lr may help\n"
        for mode in (["single"], ["ddp", "--devices", "cpu:0,cpu:1", "--backend", "local", "--oversubscribe"]):
            done = train("--lr", "1e300", "--mode", *mode)
            self.assertEqual((done.code, done.err), (3, line), done)
            self.assertRegex(done.out, r"^Epoch 1, Loss: \S+\n$")
        done = train("--lr", "1e300", "--json")
        self.assertEqual((done.code, done.err), (3, line), done)
        self.assertEqual([e["mean_loss"] for e in done.json()["epochs"]], [None])

    def test_a_sample_that_is_not_finite_is_named(self):
        table = self.folder / "t.csv"
        table.write_text("1,2,0\n3,nan,1\n")
        done = train("--model", "mlp:sizes=2-2", "--data", table, "--global-batch", 2)
        self.assertEqual(done.code, 3, done)
        self.assertIn("t.csv line 2", done.err)

    def test_options_that_change_nothing_are_refused(self):
        self.assert_refused(train("--optimizer", "adam", "--momentum", 0.9), "--momentum", "adam")
        self.assert_refused(train("--sync-batchnorm"), "--sync-batchnorm", "simple_net")

    @unittest.skipUnless(has_gloo(), "built without gloo")
    def test_a_loss_that_is_not_finite_in_processes_is_told_once_and_3(self):
        done = train("--lr", "1e300", "--mode", "ddp", "--backend", "gloo", "--devices", "cpu:0,cpu:1",
                     "--oversubscribe")
        self.assertEqual(done.code, 3, done)
        self.assertEqual(done.err.count("the loss is not finite from epoch 1 on"), 1, done)
        self.assertEqual(done.out.count("Epoch 1, Loss: "), 1, done)

    def test_numbers_that_are_not_finite_are_refused(self):
        for option in ("--lr", "--momentum", "--weight-decay", "--timeout"):
            for word in ("nan", "inf", "-1"):
                self.assert_refused(train(option, word), option, word)

    def test_help_tells_what_becomes_of_bad_images(self):
        told = " ".join(train("--help").out.split())
        self.assertIn("unreadable images: refuse or skip (default: refuse)", told)
        self.assertIn("is refused, unless --on-bad-image skip", told)

    def test_help_has_examples(self):
        done = train("--help")
        self.assertEqual(done.code, 0)
        self.assertIn("howmany train --mode ddp", done.out)

    def endless(self, *arguments):
        running = self.popen(programs.BIN / "howmany-train", "--epochs", "1000000", *arguments,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        first = running.stdout.readline()  # training has started
        self.assertIn("Loss: ", first)
        return running

    def test_ctrl_c_ends_cleanly_with_what_was_done(self):
        for arguments in (["--mode", "ddp"], ["--mode", "ddp", "--backend", "gloo"][:2 + 2 * has_gloo()]):
            running = self.endless(*arguments)
            os.killpg(running.pid, signal.SIGINT)
            # By the reader of the first line: communicate() has its own buffer.
            rest = running.stdout.read()
            self.assertEqual(running.wait(timeout=60), 130)
            for line in rest.splitlines():
                self.assertRegex(line, r"^Epoch \d+, Loss: ")

    @unittest.skipUnless(has_gloo(), "built without gloo")
    def test_a_killed_rank_is_named_and_3(self):
        running = self.endless("--mode", "ddp", "--backend", "gloo", "--devices", "cpu:0-1",
                               "--oversubscribe")
        os.kill(processes.ranks_below(running.pid)[1], signal.SIGKILL)
        _, err = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 3, err)
        self.assertIn("rank 1 of 2", err)

    @unittest.skipUnless(has_gloo(), "built without gloo")
    def test_a_rank_that_hangs_is_given_up_and_3(self):
        running = self.endless("--mode", "ddp", "--backend", "gloo", "--devices", "cpu:0-1",
                               "--oversubscribe", "--timeout", "2")
        os.kill(processes.ranks_below(running.pid)[1], signal.SIGSTOP)
        _, err = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 3, err)
        self.assertIn("rank 0 of 2", err)


if __name__ == "__main__":
    programs.main()
