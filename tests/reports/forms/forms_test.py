# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only quick
"""Tests `--emit proposal=FORM`, the forms of computing centres."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

import programs
import study

try:
    import tomllib
except ImportError:  # before Python 3.11
    sys.exit(77)

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "reports" / "forms"
FORMS = {path.stem: tomllib.loads(path.read_text()) for path in sorted(FOLDER.glob("*.toml"))}
TITLES = {"nodes": "nodes", "devices": "GPUs", "wall_time": "wall time", "start_time": "start-up",
          "step_time": "time per step", "samples_per_s": "samples/s", "speedup": "speedup", "efficiency": "efficiency",
          "interval": "95 % interval", "gpu_utilisation": "GPU utilization", "gpu_memory": "memory per device",
          "mfu": "MFU", "evidence": "evidence"}
SVG = "{http://www.w3.org/2000/svg}"
MARK = r"\[TO FILL IN: "


def tables(text):
    """Returns (head, rows) of each table of a Markdown text."""
    found, open_table = [], None
    for line in text.splitlines():
        if not line.startswith("|"):
            open_table = None
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if open_table is None:
            open_table = (cells, [])
            found.append(open_table)
        elif not set(line) <= set("|-: "):
            open_table[1].append(cells)
    return found


def section(text, title):
    """Returns the lines below a heading, up to the next one."""
    return re.split(r"^#+ ", text.split(f"# {title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def dicts(table):
    return [dict(zip(table[0], row)) for row in table[1]]


class Picture:
    """A plot: the heights of its ticks, lines and points, in numbers of its axis."""

    def __init__(self, path):
        self.root = xml.parse(path).getroot()
        ticks = [(float(text.get("y")) - 4, text.text) for text in self.root.iter(SVG + "text")
                 if text.get("text-anchor") == "end" and text.get("x") == "64"]
        (y0, v0), (y1, v1) = [(y, float(v)) for y, v in (ticks[0], ticks[-1])]
        self._value = lambda y: v0 + (y - y0) * (v1 - v0) / (y1 - y0)

    def heights(self, name):
        """Of the points of the lines of a class, "guide" or "line"; those of the legend have an "h"."""
        paths = [path.get("d") for path in self.root.iter(SVG + "path") if path.get("class") == name]
        return [[self._value(float(y)) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", d)] for d in paths if "h" not in d]

    def error_bars(self):
        bars = [path.get("d") for path in self.root.iter(SVG + "path") if path.get("class") == "bar"]
        return [tuple(self._value(float(y)) for y in re.match(r"M[\d.]+ ([\d.]+)h6m-3 0V([\d.]+)", d).groups())
                for d in bars]

    def texts(self):
        return [text.text for text in self.root.iter(SVG + "text")]


class Form(programs.TestCase):
    def write(self, summary):
        (self.folder / "summary.json").write_text(json.dumps(summary))

    def report(self, form, *arguments):
        return programs.run("howmany", "report", self.folder, "--emit", f"proposal={form}", *arguments)

    def filled(self, form, *arguments):
        done = self.report(form, *arguments)
        self.assertEqual(done.code, 0, done)
        return done.out

    def experiments(self, text):
        path = self.folder / "experiments.toml"
        path.write_text(text)
        return path


class Forms(Form):
    def test_each_form_has_its_columns_units_plots_and_marks(self):
        self.write(study.over_nodes())
        for name, form in FORMS.items():
            with self.subTest(form=name):
                text = self.filled(name)
                head, rows = tables(text)[0]
                unit = form["unit"]["name"]
                self.assertEqual(head, [unit if c == "unit_hours" else TITLES[c] for c in form["columns"]])
                self.assertEqual([row[0] for row in rows], ["1", "2", "4"])
                hours = float(dicts((head, rows))[0][unit])
                per_hour = {"node": 1, "gpu": 4}[form["unit"]["per"]]
                factor = form["unit"].get("factor", [{"value": 1}])[0]["value"]
                # 3.6 M samples at 1000 per second, and 100 s of start-up.
                self.assertAlmostEqual(hours, per_hour * factor * 3700 / 3600, delta=0.01 * hours)
                for part in form["section"]:
                    self.assertIn(MARK, section(text, part["title"]))
                files = {path.name for path in self.folder.glob(f"scaling-{name}-*.svg")}
                self.assertEqual(files, {f"scaling-{name}-{plot}.svg" for plot in form["plots"]})
                for file in files:
                    self.assertIn(f"({file})", text)
                for flag, title in (("batch_script", "Batch script"), ("software", "Software and method"),
                                    ("experiments", "Experiments")):
                    self.assertEqual(f"# {title}\n" in text, form[flag])
                self.assertIn(form["read"], text)

    def test_efficiency_is_that_of_total_times_relative_to_the_fewest_nodes(self):
        self.write(study.over_nodes())
        text = self.filled("csc")
        rows = dicts(tables(text)[0])
        self.assertIn("42 % of the run on 4 nodes", text)
        times = {1: 600, 2: 355.1, 4: 238.9}
        for row in rows:
            nodes = int(row["nodes"])
            expected = times[1] / (nodes * times[nodes])
            self.assertAlmostEqual(float(row["efficiency"]), expected, delta=0.0051)
            self.assertAlmostEqual(float(row["speedup"]), nodes * expected, delta=0.0051)
        self.assertEqual(rows[0]["95 % interval"], "baseline")
        low, high = map(float, rows[1]["95 % interval"].split(" to "))
        self.assertAlmostEqual(high - low, 2 * 0.0283 * 0.845, delta=0.01)  # 2 % of both, independent
        rates = dicts(tables(self.filled("nersc"))[0])
        self.assertEqual([row["efficiency"] for row in rates], ["1.00", "0.98", "0.95"])

    def test_total_times_of_unequal_runs_are_per_sample(self):
        summary = study.over_nodes()
        # Half of the samples: 355.1 s less half of the timed steps.
        summary["measurements"][1]["metrics"]["wall_s"] = study.metric(100 + 127.55)
        self.write(summary)
        row = dicts(tables(self.filled("csc"))[0])[1]
        self.assertAlmostEqual(float(row["efficiency"]), 600 / (2 * 2 * 227.55), delta=0.0051)
        self.assertEqual(row["95 % interval"], "not measured")

    def test_figures_that_were_not_measured_are_not_zero(self):
        self.write(study.over_nodes())
        rows = dicts(tables(self.filled("csc"))[0])
        self.assertEqual([row["GPU utilization"] for row in rows], ["93 %", "not measured", "not measured"])
        self.assertEqual([row["memory per device"] for row in rows], ["30 GB", "not measured", "not measured"])
        self.assertEqual({row["MFU"] for row in dicts(tables(self.filled("marlowe"))[0])}, {"not measured"})

    def test_rows_of_cpus_on_one_node(self):
        self.write(study.one_node())
        text = self.filled("csc")
        rows = dicts(tables(text)[0])
        self.assertEqual([row["CPU devices"] for row in rows], ["1", "2", "4"])
        self.assertEqual({row["nodes"] for row in rows}, {"1"})
        self.assertEqual({row["wall time"] for row in rows}, {"not measured"})
        self.assertEqual([row["efficiency"] for row in rows], ["1.00", "0.95", "0.70"])
        self.assertIn(MARK + "the form requires 3 numbers of nodes", text)
        gpu_hours = dicts(tables(self.filled("ncar"))[0])
        self.assertEqual({row["GPU-hours"] for row in gpu_hours}, {"not known"})

    def test_the_baseline_of_one_device_is_single(self):
        summary = study.one_node()
        faster = study.measurement(1, 105, 1.05, kind="cpu")
        faster["parameters"] |= {"mode": "ddp", "backend": "gloo"}
        summary["measurements"].append(faster)
        self.write(summary)
        rows = dicts(tables(self.filled("csc"))[0])
        self.assertEqual([row["efficiency"] for row in rows], ["1.00", "0.95", "0.70"])
        self.assertEqual(rows[0]["samples/s"], "100")

    def test_the_factor_of_an_unknown_gpu_is_left_to_the_author(self):
        summary = study.over_nodes()
        summary["context"]["gpu"] = "NVIDIA H200"
        self.write(summary)
        text = self.filled("drac")
        self.assertEqual({row["RGU-hours"] for row in dicts(tables(text)[0])}, {"not known"})
        self.assertIn(MARK + "the RGU-hours of an hour of a GPU", text)

    def test_efficiency_plot_has_the_threshold_the_ideal_and_intervals(self):
        self.write(study.over_nodes())
        self.filled("csc")
        plot = Picture(self.folder / "scaling-csc-efficiency.svg")
        ideal, required = plot.heights("guide")
        self.assertEqual([round(y, 2) for y in ideal], [1, 1])
        self.assertEqual([round(y, 2) for y in required], [0.75, 0.75])
        self.assertIn("0.75 required", plot.texts())
        self.assertIn("nodes", plot.texts())
        measured, = plot.heights("line")
        self.assertEqual([round(y, 2) for y in measured], [1, 0.84, 0.63])
        self.assertEqual(len(plot.error_bars()), 2)
        for (low, high), value in zip(plot.error_bars(), measured[1:]):
            self.assertLess(low, value)
            self.assertLess(value, high)

    def test_plots_are_files_of_a_fixed_size_without_scripts(self):
        self.write(study.over_nodes(beyond=study.predictions(study.row(32, 6400, 0.8))))
        for name in FORMS:
            self.filled(name)
        plots = sorted(self.folder.glob("scaling-*.svg"))
        self.assertEqual(len(plots), sum(len(form["plots"]) for form in FORMS.values()))
        for path in plots:
            root = Picture(path).root
            self.assertEqual(root.tag, SVG + "svg")
            self.assertTrue(float(root.get("width")) > 0 and float(root.get("height")) > 0)
            self.assertFalse({SVG + "script", SVG + "image"} & {element.tag for element in root.iter()})
            self.assertNotIn("url(", path.read_text())

    def test_linear_axes_begin_at_0_and_logarithmic_ones_double(self):
        self.write(study.over_nodes())
        for name, first in (("csc", "0"), ("incite", "1")):
            self.filled(name)
            root = xml.parse(self.folder / f"scaling-{name}-speedup.svg").getroot()
            ticks = [text.text for text in root.iter(SVG + "text")
                     if text.get("text-anchor") == "middle" and text.get("y") == "248"]
            self.assertEqual(ticks[0], first)
        self.assertEqual(ticks, ["1", "2", "4"])

    def test_projections_are_together_only_if_the_form_accepts_them(self):
        self.write(study.over_nodes(beyond=study.predictions(study.row(32, 6400, 0.8))))
        for name, form in FORMS.items():
            with self.subTest(form=name):
                text = self.filled(name)
                together = form["projections"] == "together"
                found = tables(text)
                nodes = [row["nodes"] for row in dicts(found[0])]
                self.assertEqual(nodes, ["1", "2", "4"] + ["8"] * together)
                predicted = dicts(found[0] if together else found[1])[-1]
                self.assertEqual(predicted["evidence"], "predicted")
                self.assertEqual(predicted["efficiency"], "0.80")
                self.assertIn("0.72 to 0.88", predicted["interval" if together else "90 % interval"])
                self.assertIn("The loss grows as on published curves.", text)

    def test_the_batch_script_is_inside_or_left_to_the_author(self):
        self.write(study.one_node("cuda"))
        script, = re.findall(r"```sh\n(#!/bin/bash.*?)```", self.filled("csc"), re.DOTALL)
        self.assertIn("#SBATCH --gpus=2", script)
        summary = study.one_node("cuda")
        del summary["measurements"][1:]
        summary["measurements"][0]["metrics"]["efficiency"]["value"] = 0.5
        summary["measurements"][0]["parameters"]["mode"] = "ddp"
        self.write(summary)
        self.assertIn(MARK, section(self.filled("csc"), "Batch script"))

    def test_experiments_are_rows_with_a_total(self):
        self.write(study.over_nodes(beyond=study.predictions(study.row(32, 6400, 0.8))))
        path = self.experiments("""
[[experiment]]
name = "pretraining | a"
nodes = 4
samples = 3.6e6
runs = 3
[[experiment]]
name = "search"
devices = 4
hours = 2.5
runs = 10
[[experiment]]
name = "large"
devices = 32
samples = 2.304e7
runs = 1
""")
        text = self.filled("ncar", "--experiments", path)
        rows = tables(section(text, "Experiments"))[0]
        large = 23.04e6 / 6400 / 3600 * 32
        per_run = [round(16 * (1000 + 100) / 3600, 1), 4 * 2.5, round(large, 1)]
        self.assertEqual([float(row["GPU-hours per run"]) for row in dicts(rows)[:-1]], per_run)
        totals = [float(row["total GPU-hours"]) for row in dicts(rows)]
        self.assertAlmostEqual(totals[0], 3 * per_run[0])
        self.assertAlmostEqual(totals[-1], sum(totals[:-1]))
        self.assertEqual([row["evidence"] for row in dicts(rows)], ["measured", "measured", "predicted", ""])
        self.assertNotIn(MARK, section(text, "Experiments"))

    def test_bad_experiments_are_refused_with_their_place(self):
        self.write(study.over_nodes())
        good = {"name": '"a"', "nodes": "2", "samples": "1e6", "runs": "1"}
        cases = [({"runs": "-1"}, 5, "experiment[1].runs"), ({"runs": "0"}, 5, "runs"), ({"runs": "1.5"}, 5, "runs"),
                 ({"runs": "1e9"}, 5, "runs"), ({"runs": '"3"'}, 5, "runs"), ({"nodes": "3"}, 3, "1, 2, 4"),
                 ({"nodes": "-2"}, 3, "nodes"), ({"samples": "-1e6"}, 4, "samples"), ({"samples": "nan"}, 4, "samples"),
                 ({"samples": "1e15"}, 4, "samples"), ({"name": '""'}, 2, "name"), ({"gpus": "3"}, 6, "gpus: unknown key"),
                 ({"hours": "2"}, 1, "one of them"), ({"devices": "8"}, 1, "one of them"), ({"name": None}, 1, "name")]
        for change, line, words in cases:
            with self.subTest(change=change):
                lines = [f"{key} = {value}" for key, value in (good | change).items() if value is not None]
                path = self.experiments("[[experiment]]\n" + "\n".join(lines) + "\n")
                done = self.report("ncar", "--experiments", path)
                self.assertEqual(done.code, 2, done)
                self.assertIn(f"{path}:{line}: ", done.err)
                self.assertIn(words, done.err)
                self.assertEqual(done.out, "")
        for text in ("", "[[experiment]\n", "experiment = 3\n", "other = 1\n", "[experiment]\nname = 'a'\n"):
            done = self.report("ncar", "--experiments", self.experiments(text))
            self.assertEqual(done.code, 2, done)
            self.assertIn("experiments.toml:", done.err)

    def test_unknown_forms_and_options_are_refused(self):
        self.write(study.over_nodes())
        for form, words in (("cscc", "did you mean csc?"), ("zzz", "archer2, csc"), ("csc:html", ":latex"),
                            ("", "archer2")):
            done = self.report(form)
            self.assertEqual(done.code, 2, done)
            self.assertIn(words, done.err)
        path = self.experiments("")
        for emit in (["--emit", "proposal"], []):
            done = programs.run("howmany", "report", self.folder, *emit, "--experiments", path)
            self.assertEqual(done.code, 2, done)
        done = self.report("zzz")
        for name in FORMS:
            self.assertIn(name, done.err)

    def test_nodes_must_be_whole_numbers(self):
        for nodes in ("0", "-1", "two", "1.5", "99999999999"):
            summary = study.over_nodes()
            summary["measurements"][1]["parameters"]["nodes"] = nodes
            self.write(summary)
            done = self.report("csc")
            self.assertEqual(done.code, 2, done)
            self.assertIn('"nodes"', done.err)

    def test_several_runs_have_a_part_and_plots_each(self):
        folders = [self.folder / name for name in ("strong", "weak")]
        for folder in folders:
            folder.mkdir()
            (folder / "summary.json").write_text(json.dumps(study.over_nodes()))
        done = programs.run("howmany", "report", *folders, "--emit", "proposal=nhr")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(len(tables(done.out)), 2)
        names = {f"scaling-nhr{part}-{plot}.svg" for part in ("", "-2") for plot in FORMS["nhr"]["plots"]}
        self.assertEqual({path.name for path in folders[0].glob("*.svg")}, names)


class Latex(Form):
    NAME = r"a_b & c% #1 {x} \end{verbatim} $y^2~ [z] \"q\" --é 学"

    def latex(self, form):
        text = json.dumps(study.one_node("cuda", beyond=study.predictions(
            study.row(8, 500, 0.6), measured=((1, 100), (2, 190), (4, 280))) | {"what": ""}))
        (self.folder / "summary.json").write_text(text.replace('"net"', json.dumps(self.NAME)))
        return self.filled(form + ":latex")

    def test_environments_and_braces_are_balanced(self):
        for name, form in FORMS.items():
            with self.subTest(form=name):
                text = self.latex(name)
                self.assertEqual(re.findall(r"^\\begin\{(\w+)\}", text, re.MULTILINE).count("verbatim"),
                                 text.count("\\end{verbatim}"))
                prose = re.sub(r"\\begin\{verbatim\}.*?\\end\{verbatim\}", "", text, flags=re.DOTALL)
                prose = re.sub(r"^%.*", "", prose, flags=re.MULTILINE)
                opened = []
                for kind, environment in re.findall(r"\\(begin|end)\{(\w+)\}", prose):
                    if kind == "begin":
                        opened.append(environment)
                    else:
                        self.assertEqual(opened.pop(), environment)
                self.assertEqual(opened, [])
                plain = re.sub(r"\\[{}$&#_%\\]", "", prose)
                self.assertEqual(plain.count("{"), plain.count("}"))
                self.assertNotRegex(plain, r"[$#^~_学]")
                columns = len(re.search(r"\\begin\{tabular\}\{(r+)\}", prose).group(1))
                self.assertEqual(columns, len(form["columns"]))
                table = re.search(r"\\begin\{tabular\}.*?\\end\{tabular\}", plain, re.DOTALL).group(0)
                for line in table.splitlines():
                    if line.endswith(r" \\") or line.endswith(" "):
                        self.assertEqual(line.count("&"), columns - 1, line)

    def test_it_compiles(self):
        program = shutil.which("pdflatex")
        if program is None:
            self.skipTest("no pdflatex")
        for name in FORMS:
            body = self.latex(name)
            path = self.folder / f"{name}.tex"
            path.write_text("\\documentclass{article}\n\\usepackage{graphicx}\n\\begin{document}\n" + body +
                            "\\end{document}\n")
            done = subprocess.run([program, "-interaction=nonstopmode", "-halt-on-error", path], cwd=self.folder,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout[-2000:])


if __name__ == "__main__":
    programs.main()
