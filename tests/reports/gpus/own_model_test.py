# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 600
"""Tests `howmany gpus --model MODEL --up-to N --cluster FILE`, where the devices of the cluster are here."""

import json

import programs
from clusters import cpu_cluster


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

    def devices(self, beyond):
        return [[row["devices"] for row in beyond[kind]] for kind in ("measured", "rehearsed", "predicted")]

    def test_our_ddp_is_measured_and_computed(self):
        done = self.gpus(16)
        beyond = self.beyond(done)
        self.assertEqual(self.devices(beyond), [[1, 2], [], [4, 8, 16]])
        rows = json.loads((self.out / "summary.json").read_text())["measurements"]
        self.assertEqual([(row["suite"], row["parameters"]["mode"], row["parameters"]["devices"]) for row in rows],
                         [("speedup", "single", "1"), ("speedup", "ddp", "1"), ("speedup", "ddp", "2")])
        again = programs.run("howmany", "report", self.out)
        self.assertEqual(again.out, done.out)

    def test_exchanges_take_the_times_of_the_cluster(self):
        """A hop of 10 s between nodes of 4 devices, which no step hides: 8 devices wait for 2 hops, 16 for 4."""
        beyond = self.beyond(self.gpus(16, devices="cpu:0", hop_us=10_000_000))
        one = beyond["measured"][0]["samples_per_s"]
        rows = json.loads((self.out / "summary.json").read_text())["measurements"]
        batch = int(rows[0]["parameters"]["global_batch"])
        two_hops, four_hops = beyond["predicted"][-2:]
        self.assertAlmostEqual(two_hops["efficiency"] / four_hops["efficiency"], 2, delta=0.2)
        self.assertGreater(batch / one / two_hops["efficiency"], 2)  # seconds; 20 on an idle machine
        for row in (two_hops, four_hops):
            self.assertLess(row["low"], row["samples_per_s"])
        other = self.folder / "other.toml"
        other.write_text(cpu_cluster(latency_us=1, name="other", hop_us=1))
        again = programs.run("howmany", "predict", self.out, "--cluster", other, "--up-to", 16, "--json").json()
        for slow, fast in zip(beyond["predicted"][-2:], again["predicted"][-2:]):
            self.assertGreater(fast["efficiency"], 100 * slow["efficiency"])

    def test_each_mode_has_its_own_steps(self):
        for mode, most, known in (("tensor", 8, [2, 4, 8]), ("tensor:ways=2", 8, [4, 8]), ("pipeline", 4, [2, 4]),
                                  ("hybrid:stages=2", 8, [2, 4, 8])):
            with self.subTest(mode):
                beyond = self.beyond(self.gpus(most, "--mode", mode, model="mlp:sizes=16-32-32-32-4", out=f"of {mode}",
                                               devices="cpu:0,cpu:1" if "ways" in mode else "cpu:0"))
                rows = [row["devices"] for row in beyond["predicted"] if "refused" not in row]
                self.assertEqual(rows, known)
        self.assert_refused(self.gpus(7, "--mode", "tensor:ways=2", out="odd"), "--up-to 7: groups of 2 devices do not divide it")

    def test_strong_scaling(self):
        done = self.gpus(8, "--global-batch", 64)
        beyond = self.beyond(done)
        self.assertEqual(beyond["scaling"], "strong")
        self.assertEqual(self.devices(beyond), [[1, 2], [], [4, 8]])
        self.assertEqual(programs.run("howmany", "report", self.out).out, done.out)

    def test_what_is_not_computed_is_refused_before_measuring(self):
        for arguments, word in ((("--mode", "model"), "one --mode"), (("--mode", "ddp,model"), "one --mode"),
                                (("--model", "resnet18"), "one --model"), (("--global-batch", 8), "a batch of 8"),
                                (("--mode", "pipeline"), "2 layers to divide, 16 stages")):
            self.assert_refused(self.gpus(16, *arguments), word)
        self.assert_refused(self.gpus(2), "--up-to 2")
        self.assertFalse(self.out.exists())


if __name__ == "__main__":
    programs.main()
