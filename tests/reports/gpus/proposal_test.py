# SPDX-License-Identifier: Apache-2.0
# labels: process
"""Tests `--emit proposal`, the scaling section of a proposal for computing time."""
import json
import re
import subprocess

import programs
from fake import Fake


def tables(text):
    """Returns the rows of each table of a Markdown text, as dicts."""
    found, head = [], None
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] if line.startswith("|") else None
        if cells is None:
            head = None
        elif head is None:
            head = cells
            found.append([])
        elif not set(line) <= set("|-: "):
            found[-1].append(list(zip(head, cells)))
    return found


class Proposal(Fake):
    def run_into(self, folder, *arguments):
        done = self.howmany("gpus", "--mode", "ddp", "--rounds", "3", "--out", folder, *arguments)
        self.assertEqual(done.code, 0, done)
        return json.loads((folder / "summary.json").read_text())

    def test_a_part_for_each_run_with_its_rows_and_its_command(self):
        weak = self.run_into(self.folder / "weak", "--batch-per-device", "32")
        self.run_into(self.folder / "strong", "--global-batch", "64")
        done = self.howmany("report", self.folder / "weak", self.folder / "strong", "--emit", "proposal")
        self.assertEqual(done.code, 0, done)
        first, second = tables(done.out)
        points = weak["answer"]["gpus"]["table"]
        self.assertEqual([dict(row)["CPU devices"] for row in first], [str(point["devices"]) for point in points])
        self.assertEqual([dict(row)["efficiency"] for row in first],
                         [f"{point['efficiency']:.2f}" for point in points])
        self.assertEqual(len(second), len(first))
        for kind in ("weak scaling", "strong scaling"):
            self.assertIn(kind, done.out)
        commands = re.findall(r"```sh\n(.*)\n```", done.out)
        self.assertIn("--batch-per-device 32", commands[0])
        self.assertIn("--global-batch 64", commands[1])
        for command in commands:
            self.assertEqual(subprocess.run(["bash", "-n", "-c", command], check=False).returncode, 0)

    def test_the_command_of_each_model_has_its_own_batch(self):
        done = self.howmany("run", "--rounds", "1", "--out", self.out, "--emit", "proposal", FAKE_CORES="2")
        self.assertEqual(done.code, 0, done)
        commands, = re.findall(r"```sh\n(.*)\n```", done.out, re.DOTALL)
        batches = {words[words.index("--model") + 1]: words[words.index("--batch-per-device") + 1]
                   for words in map(str.split, commands.splitlines())}
        self.assertEqual(batches, {"mlp": "128", "resnet18:image=64": "16"})

    def test_predictions_are_in_a_table_of_their_own_with_their_intervals(self):
        done = self.howmany("gpus", "--mode", "ddp", "--rounds", "3", "--up-to", "16", "--out", self.out,
                            "--emit", "proposal", FAKE_GPUS="4")
        self.assertEqual(done.code, 0, done)
        measured, more = tables(done.out)
        self.assertEqual([dict(row)["GPUs"] for row in measured][-1], "4")
        self.assertEqual([dict(row)["GPUs"] for row in more], ["8", "16"])
        for row in more:
            self.assertEqual(dict(row)["evidence"], "predicted")
            self.assertEqual(sum(name == "90 % interval" and " to " in cell for name, cell in row), 2)
        form = tables(self.howmany("report", self.out, "--emit", "proposal=incite").out)[0]
        self.assertEqual([dict(row)["efficiency"] for row in form[-2:]], [dict(row)["efficiency"] for row in more])
        self.assertEqual([dict(row)["nodes"] for row in form[-2:]], ["1", "2"])  # of 8 GPUs

    def test_a_form_is_filled_in_after_a_measurement(self):
        done = self.howmany("gpus", "--mode", "ddp", "--rounds", "3", "--out", self.out, "--emit", "proposal=nersc",
                            FAKE_GPUS="4")
        self.assertEqual(done.code, 0, done)
        rows = tables(done.out)[0]
        self.assertEqual([dict(row)["GPUs"] for row in rows], ["1", "2", "3", "4"])
        points = {point["devices"]: point for point in self.summary()["answer"]["gpus"]["table"] if point["best"]}
        self.assertEqual([dict(row)["efficiency"] for row in rows],
                         [f"{points[int(dict(row)['GPUs'])]['efficiency']:.2f}" for row in rows])
        self.assertEqual({path.name for path in self.out.glob("*.svg")},
                         {"scaling-nersc-speedup.svg", "scaling-nersc-efficiency.svg"})

    def test_other_runs_are_refused(self):
        path = self.folder / "summary.json"
        path.write_text(json.dumps({"schema": "howmany.summary/1", "context": {}, "measurements": [],
                                    "answer": {"workers": {"recommended": 2}}}))
        for emit in ("proposal", "proposal=csc"):
            done = self.howmany("report", path, "--emit", emit)
            self.assertEqual(done.code, 2, done)
            self.assertIn("howmany workers", done.err)

    def test_names_are_shown_as_they_are(self):
        summary = self.run_into(self.folder / "run")
        text = (self.folder / "run" / "summary.json").read_text().replace(
            f'"{summary["measurements"][0]["parameters"]["model"]}"', '"a|b <i>@all"')
        (self.folder / "run" / "summary.json").write_text(text)
        done = self.howmany("report", self.folder / "run", "--emit", "proposal")
        self.assertEqual(done.code, 0, done)
        self.assertIn(r"a\|b \<i>@&#8203;all", done.out)


if __name__ == "__main__":
    programs.main()
