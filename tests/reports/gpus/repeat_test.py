# SPDX-License-Identifier: Apache-2.0
# labels: process alone
# timeout: 180
"""Rounds that other programs disturb are measured again if the time budget allows."""
import json

import load
import programs
from fake import Fake

SECONDS = {"FAKE_SECONDS": "1.2"}  # per run; load is unknown in less than a second


class Repeat(Fake):
    def measured(self):
        """The runs that measured, by mode and devices."""
        return [(a["mode"], len(a["devices"].split(","))) for a in self.started()]

    def test_a_disturbed_round_is_measured_again(self):
        with load.busy_cores():
            done = self.gpus(**SECONDS)
        self.assertEqual(done.code, 0, done)
        once = [("single", 1), ("ddp", 1), ("ddp", 2)]
        self.assertEqual(self.measured(), once + once)
        self.assertEqual(len([line for line in done.err.splitlines() if " again: " in line]), 3, done)
        self.assertEqual((len(self.rows()), len(self.samples())), (3, 3))
        answer = self.summary()["answer"]["gpus"]
        self.assertEqual((answer["certain"], answer["disturbed"]), (False, True))
        for row in self.rows():
            self.assertGreater(row["busy_elsewhere_fraction"], 0.1)

    def test_a_repeated_round_is_in_the_trace_once(self):
        with load.busy_cores():
            done = self.gpus("--profile", **SECONDS)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(len(self.measured()), 6)
        names = (self.out / "trace.pftrace").read_text().split()
        self.assertEqual(sorted(names), sorted(row["name"] for row in self.rows()))
        self.assertEqual(list(self.out.glob(".*")), [])

    def test_a_spent_time_budget_leaves_it_as_it_is(self):
        with load.busy_cores():
            done = self.gpus("--time-budget", "1", **SECONDS)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(len(self.measured()), 3)
        self.assertIs(self.summary()["answer"]["gpus"]["disturbed"], True)

    def test_a_resumed_measurement_repeats_it_too(self):
        with load.busy_cores():
            self.gpus("--time-budget", "1", **SECONDS)
            plan = json.loads((self.out / "plan.json").read_text())
            plan["request"]["time-budget"] = 0
            (self.out / "plan.json").write_text(json.dumps(plan))
            done = self.howmany("gpus", "--resume", self.out, **SECONDS)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(len(self.measured()), 6)


if __name__ == "__main__":
    programs.main()
