# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 600
"""Whole commands over four imitated GPUs: what a user would see there, but for how long things take."""
import json

import programs

MODEL = ("--model", "mlp:sizes=32-32-16-4")


class Commands(programs.TestCase):
    def howmany(self, *arguments, code=0, **environment):
        done = programs.run("howmany", *arguments, timeout=200, HOWMANY_BENCH_DIR=str(programs.BIN / "on_fake_gpus"),
                            LD_LIBRARY_PATH=f"{programs.BIN / 'fake_cuda'}:{programs.BIN / 'fake_driver'}",
                            **environment)
        self.assertEqual(done.code, code, done)
        return done

    def gpus(self, *arguments):
        return self.howmany("gpus", *MODEL, "--batch-per-device", 4, "--rounds", 1, "--out", self.folder / "out",
                            "--json", *arguments).json()

    def test_devices_are_the_gpus(self):
        found = self.howmany("devices", "--json").json()
        cuda, = [part for part in found["backends"]["kernels"] if part["name"] == "cuda"]
        self.assertTrue(cuda["usable"], cuda)
        self.assertEqual([gpu["index"] for gpu in found["gpus"]], [0, 1, 2, 3], "as CUDA counts them")
        self.assertEqual([gpu["name"] for gpu in found["gpus"]],
                         ["Test GPU 80GB", "Test GPU MIG", "fake GPU", "fake GPU"])

    def test_the_engine_of_each_operation_is_named(self):
        few = ("--model", "resnet18:image=32,width=8", "--model", "gpt2:width=64,layers=1,heads=1,length=16",
               "--batch-per-device", 2)
        found = self.howmany("devices", "--engines", *few, "--json").json()
        self.assertTrue(found["libraries"].startswith("cuBLASLt"), found)
        seen = {(one["model"].split(":")[0], one["precision"]) for one in found["operations"]}
        self.assertLessEqual({("resnet18", "bf16"), ("resnet18", "f32")}, seen)
        for one in found["operations"]:
            self.assertRegex(one["engine"], r"^engine \d+, the fastest of \d+$")
        text = self.howmany("devices", "--engines", *few).out
        self.assertEqual(text.count("the fastest of"), len(found["operations"]))
        refused = self.howmany("devices", "--engines", *few, "--json", HM_FAKE_CUDNN="refuse").json()
        self.assertEqual(refused["operations"], [])
        self.assertTrue(refused["fallbacks"])

    def test_gpus_that_are_too_old_are_named(self):
        found = self.howmany("devices", "--json", HM_FAKE_CAPABILITY="70").json()
        cuda, = [part for part in found["backends"]["kernels"] if part["name"] == "cuda"]
        self.assertFalse(cuda["usable"], cuda)
        self.assertRegex(cuda["why"], r"cuda:0 \(fake GPU\) .*7\.0.*8\.0")

    def test_every_mode_trains_on_gpus_and_is_compared(self):
        answer = self.gpus("--devices", "cuda:0,cuda:1", "--backend", "gloo", "--mode", "all")
        self.assertIn("GPU", answer["answer"]["gpus"]["because"])
        self.check_measured(answer, "cuda:0,cuda:1")

    def test_a_gpu_and_a_cpu_train_together_in_bf16(self):
        answer = self.gpus("--devices", "cuda:0,cpu:0", "--mode", "ddp,data_parallel,model,pipeline", "--precision",
                           "bf16")
        self.assertNotIn("GPU", answer["answer"]["gpus"]["because"])
        self.check_measured(answer, "cuda:0,cpu:0")

    def test_gpus_are_called_by_their_uuids(self):
        answer = self.gpus("--devices", "cuda:GPU-8932f937,GPU-8ff00a11-4106", "--backend", "gloo", "--mode", "ddp")
        self.check_measured(answer, "cuda:0,cuda:1")
        told = self.howmany("gpus", *MODEL, "--devices", "GPU-8", code=2).err
        self.assertIn("the UUIDs of cuda:0, cuda:1, cuda:2 begin with GPU-8", told)

    def test_ranks_rehearse_on_one_gpu(self):
        refused = self.howmany("gpus", *MODEL, "--devices", "cuda:0,cuda:0", code=2).err
        self.assertIn("--oversubscribe", refused)
        answer = self.gpus("--devices", "cuda:0,cuda:0", "--oversubscribe", "--mode", "ddp,data_parallel,pipeline")
        self.check_measured(answer, "cuda:0,cuda:0")
        answer = answer["answer"]["gpus"]  # a shared GPU gives no result for two
        self.assertEqual((answer["recommended"], answer["reason"]), (None, "one_device_measured"))

    def check_measured(self, answer, devices):
        self.assertIn(devices, {m["parameters"]["device_list"] for m in answer["measurements"]})
        for m in answer["measurements"]:
            self.assertEqual([f for f in m["flags"] if f.startswith("failed")], [], m)
            self.assertLessEqual(m["metrics"]["bubble_fraction"]["value"], 1, m)

    def test_transfer_tells_what_pinning_saves(self):
        done = self.howmany("transfer", *MODEL, "--max-bytes", "1M", "--time-budget", 3, "--quiet", "--out",
                            self.folder / "out")
        self.assertIn("Copies to and from cuda:0", done.out)
        answer = json.loads((self.folder / "out" / "summary.json").read_text())["answer"]["transfer"]
        self.assertIn(answer["reason"], ("pinned_faster", "pinned_not_faster"))
        self.assertIn("device_to_device, 1 MiB, from cuda:0, path peer, to cuda:1", done.out)
        self.assertNotIn("failed", done.out)

    def test_backends_are_compared_on_buffers_of_gpus(self):
        done = self.howmany("backend", "--devices", "cuda:0,cuda:1", "--backend", "local,gloo", "--ops",
                            "all_reduce,send_recv", "--max-bytes", "4K", "--time-budget", 8, "--quiet", "--out",
                            self.folder / "out")
        self.assertIn("all_reduce, f32, 2 ranks", done.out)

    def test_backends_are_compared_on_all_gpus_unless_told_otherwise(self):
        done = self.howmany("backend", "--backend", "local", "--ops", "broadcast", "--max-bytes", "4K", "--time-budget",
                            4, "--quiet", "--json", "--out", self.folder / "out").json()
        worlds = {m["parameters"]["devices"] for m in done["measurements"] if m["parameters"]["bytes"] == "4096"}
        self.assertEqual(worlds, {"4"})
        self.assertEqual(done["context"]["howmany_request"]["devices"], "cuda:0,cuda:1,cuda:2,cuda:3")

    def test_train_learns_on_a_gpu(self):
        done = self.howmany("train", *MODEL, "--global-batch", 16, "--synthetic-samples", 64, "--epochs", 4, "--json").json()
        self.assertEqual(done["devices"], ["cuda:0"], "where no --devices say otherwise")
        epochs = done["epochs"]
        self.assertLess(epochs[-1]["mean_loss"], epochs[0]["mean_loss"])


if __name__ == "__main__":
    programs.main()
