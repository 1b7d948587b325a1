# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 180
"""Tests `howmany compare` through the command line: output, files, errors and exit codes."""
import json
import pathlib
import random
import subprocess
import sys
import xml.etree.ElementTree as xml

import programs

HERE = pathlib.Path(__file__).resolve().parent
MACHINE = {"num_cpus": 2, "cpu": "some CPU", "date": "2026-01-01", "host_name": "h"}
FORMATS = ("text", "markdown", "json", "junit", "annotations", "sarif")


def rows(name, center, count=20, spread=0.02, seed="1", **more):
    rng = random.Random(f"{name}{seed}{center}")
    return [{"name": name, "run_name": name, "run_type": "iteration", "repetitions": count, "repetition_index": i,
             "iterations": 100, "real_time": center * rng.gauss(1, spread), "cpu_time": 1.0, "time_unit": "us", **more}
            for i in range(count)]


def refuse(token):
    raise ValueError(f"{token} is not JSON")


class Files(programs.TestCase):
    def file(self, name, benchmarks, context=None):
        path = self.folder / name
        path.write_text(json.dumps({"context": MACHINE if context is None else context, "benchmarks": benchmarks}))
        return path

    def compare(self, a, b, *more):
        return programs.run("howmany", "compare", a, b, *more)

    def both(self, base, candidate, *more):
        return self.compare(self.file("a.json", base), self.file("b.json", candidate), *more)


class Compare(Files):
    def test_a_regression_is_exit_1_and_comes_first(self):
        done = self.both(rows("x", 10) + rows("y", 10), rows("x", 13) + rows("y", 10, seed="2"))
        self.assertEqual(done.code, 1, done)
        self.assertTrue(done.out.startswith("Slower: 1 of 2 measurements"), done)
        self.assertIn("rank sum", done.out)

    def test_no_change_and_a_gain_are_exit_0(self):
        self.assertEqual(self.both(rows("x", 10), rows("x", 10, seed="2")).code, 0)
        self.assertEqual(self.both(rows("x", 10), rows("x", 7)).code, 0)

    def test_units_may_differ(self):
        other = rows("x", 10, seed="2")
        for row in other:
            row["real_time"] /= 1000
            row["time_unit"] = "ms"
        self.assertEqual(self.both(rows("x", 10), other, "--json").json()["rows"][0]["verdict"], "SAME")

    def test_iteration_counts_may_differ(self):
        done = self.both(rows("x", 10), rows("x", 10, seed="2", iterations=7), "--json").json()
        self.assertEqual(done["rows"][0]["verdict"], "SAME")

    def test_an_error_on_one_side_is_exit_3(self):
        failed = [{"name": "x", "run_type": "iteration", "error_occurred": True, "error_message": "wrong sum"}]
        done = self.both(rows("x", 10), failed)
        self.assertEqual(done.code, 3, done)
        self.assertIn("wrong sum", done.out)

    def test_other_machines_are_exit_4_with_the_fields(self):
        a = self.file("a.json", rows("x", 10))
        b = self.file("b.json", rows("x", 10), {**MACHINE, "cpu": "other CPU", "num_cpus": 4})
        done = self.compare(a, b)
        self.assert_refused(done, "cpu: some CPU in the base, other CPU in the candidate", "num_cpus", "--force",
                            code=4)
        self.assertEqual(done.out, "")
        self.assertEqual(self.compare(a, b, "--force").code, 0)

    def test_some_inconclusive_is_a_warning_or_exit_5(self):
        base, candidate = rows("x", 10, 2) + rows("y", 10), rows("x", 10, 2) + rows("y", 10, seed="2")
        done = self.both(base, candidate)
        self.assertEqual(done.code, 0, done)
        self.assertIn("warning", done.err)
        self.assertIn("--benchmark_repetitions=", done.out)
        self.assertEqual(self.both(base, candidate, "--strict").code, 5)

    def test_nothing_judged_is_exit_5_and_names_the_largest_change(self):
        done = self.both(rows("x", 10, 1) + rows("slow", 10, 1, 0), rows("x", 10, 1) + rows("slow", 1000, 1, 0))
        self.assertEqual(done.code, 5, done)
        first = done.out.splitlines()[0]
        for words in ("1 run a side", "slow +9900 %"):
            self.assertIn(words, first)
        done = self.both(rows("x", 10, 1), rows("x", 10, 1), "--format", "annotations")
        self.assertTrue(done.out.startswith("::error "), done)

    def test_an_empty_loop_is_not_judged(self):
        done = self.both(rows("x", 10) + rows("empty", 3e-10), rows("x", 10, seed="2") + rows("empty", 4e-10), "--json")
        self.assertEqual(done.code, 0, done)
        row = next(row for row in done.json()["rows"] if row["benchmark"] == "empty")
        self.assertEqual(row["verdict"], "SKIPPED")
        self.assertIn("0.1 ns", row["why"])

    def test_keys_that_appear_twice_are_refused(self):
        good = self.file("good.json", rows("x", 10))
        row = '{"name": "x", "real_time": 1'
        for name, text, key in (("top", '{"benchmarks": [], "benchmarks": []}', "benchmarks"),
                                ("row", '{"benchmarks": [' + row + ', "real_time": 2}]}', "real_time"),
                                ("context", '{"context": {"a": {"b": 1, "b": 1}}, "benchmarks": []}', "context.a.b")):
            path = self.folder / f"{name}.json"
            path.write_text(text)
            with self.subTest(name):
                self.assert_refused(self.compare(path, good), str(path), key)
        path.write_text('{"schema": "a", "schema": "howmany.summary/1"}')
        self.assert_refused(programs.run("howmany", "report", path), str(path), "schema")

    def test_a_counter_with_the_name_of_a_field_is_left_out(self):
        def text(first):
            each = ('{"name": "x", "run_type": "iteration", "repetition_index": %d, "threads": 1, "iterations": 1000, '
                    '"real_time": %r, "time_unit": "ns", "iterations": 7.5, "threads": 2.0}')
            return '{"benchmarks": [' + ", ".join(each % (i, first + i % 3) for i in range(10)) + "]}"
        a, b = self.folder / "a.json", self.folder / "b.json"
        a.write_text(text(50))
        b.write_text(text(80))
        done = self.compare(a, b, "--json")
        self.assertEqual(done.code, 1, done)
        self.assertEqual([row["metric"] for row in done.json()["rows"]], ["real_time"])

    def test_pytest_benchmark_and_hyperfine_are_read(self):
        def pytest(factor, data=True):
            times = [1e-3 * factor * (1 + i % 3 / 1000) for i in range(12)]
            stats = {"min": times[0], "median": times[4], "mean": times[4]} | ({"data": times} if data else {})
            return {"machine_info": {"node": "n", "cpu": {"count": 2}}, "version": "4.0.0",
                    "benchmarks": [{"name": "test_a", "fullname": "t.py::test_a", "stats": stats}]}

        def hyperfine(factor):
            times = [0.1 * factor * (1 + i % 3 / 1000) for i in range(12)]
            return {"results": [{"command": "sleep 0.1", "median": times[4], "times": times}]}

        for make, name in ((pytest, "t.py::test_a"), (hyperfine, "sleep 0.1")):
            paths = [self.folder / f"{factor}.json" for factor in (1, 2)]
            for factor, path in zip((1, 2), paths):
                path.write_text(json.dumps(make(factor)))
            done = self.compare(*paths, "--json")
            self.assertEqual(done.code, 1, done)
            row = done.json()["rows"][0]
            self.assertEqual([row["benchmark"], row["verdict"]], [name, "SLOWER"])
            self.assertAlmostEqual(row["change"], 1, places=2)
        paths[0].write_text(json.dumps(pytest(1, data=False)))
        row = self.compare(paths[0], paths[0], "--json").json()["rows"][0]
        self.assertEqual(row["verdict"], "INCONCLUSIVE")

    def test_files_of_other_tools_are_named(self):
        good = json.dumps({"benchmarks": rows("x", 10)})
        for name, text, word in (
                ("utf16le", good.encode("utf-16"), "UTF-16"), ("utf16be", b"\xfe\xff" + good.encode("utf-16-be"), "UTF-16"),
                ("utf16", good.encode("utf-16-le"), "UTF-16"), ("before", b"***WARNING***\n" + good.encode(), "before"),
                ("after", good.encode() + b"\nbye", "after"), ("two", (good + "\n" + good).encode(), "documents"),
                ("criterion", b'{"mean": {}, "median": {}, "slope": null}', "criterion"),
                ("asv", b'{"commit_hash": "a", "result_columns": [], "results": {}}', "asv"),
                ("benchstat", b"goos: linux\nBenchmarkX-8  100  123 ns/op\n", "benchstat"),
                ("jmh", b'[{"jmhVersion": "1"}]', "JMH"), ("csv", b"name,iterations,real_time,cpu_time\n", "CSV"),
                ("console", b"Benchmark   Time   CPU   Iterations\n", "console"), ("other", b'{"a": 1}', "pytest-benchmark")):
            path = self.folder / name
            path.write_bytes(text)
            with self.subTest(name):
                self.assert_refused(self.compare(path, path), str(path), word)
        (self.folder / "bom").write_bytes(b"\xef\xbb\xbf" + good.encode())
        self.assertEqual(self.compare(self.folder / "bom", self.folder / "bom").code, 0)

    def test_long_names_are_cut_in_text_and_whole_in_files(self):
        name = "begin" + "x" * 5000 + "end"
        sides = rows(name, 10), rows(name, 12, seed="2")
        lines = self.both(*sides).out.splitlines()
        self.assertLess(max(map(len, lines)), 200)
        self.assertRegex("".join(lines), "beginx+[.]{3}x+end")
        self.assertIn(name, self.both(*sides, "--format", "junit").out)
        self.assertEqual(self.both(*sides, "--json").json()["rows"][0]["benchmark"], name)

    def test_no_format_lets_control_characters_through(self):
        name = "\033[2J\u009b31m\x7f"
        sides = rows(name, 10), rows(name, 12, seed="2")
        for format in FORMATS + ("history",):
            out = self.both(*sides, "--format", format).out
            with self.subTest(format):
                self.assertGreater(len(out), 0)
                self.assertFalse([c for c in out if (c < " " and c not in "\n\r") or "\x7f" <= c < "\xa0"], out)

    def test_markdown_has_no_mentions_links_or_hidden_characters(self):
        name = "@everyone [link](http://x) www.x \u202e #1 &#64;a"
        out = self.both(rows(name, 10), rows(name, 12, seed="2"), "--format", "markdown").out
        for live in ("@everyone", "[link]", "http://", "www.x", "\u202e", "#1 ", " &#64;"):
            self.assertNotIn(live, out)
        self.assertIn("everyone", out)

    def test_nothing_compared_is_exit_3_strict_or_not(self):
        base = rows("x", 10) + rows("y", 10)
        for other, told in (([], "2 missing"), (rows("a", 10) + rows("b", 10), "2 missing, 2 new")):
            for more in ((), ("--strict",)):
                done = self.both(base, other, *more)
                self.assertEqual(done.code, 3, done)
                self.assertTrue(done.out.startswith(f"Nothing was compared, {told}."), done)
        done = self.both(base, rows("a", 10), "--format", "annotations")
        self.assertTrue(done.out.startswith("::error title=howmany::Nothing was compared"), done)
        for other in (rows("x", 10), [{**row, "items_per_second": 5.0} for row in rows("x", 10)]):
            done = self.both([{**row, "items_per_second": 5.0} for row in rows("x", 10)], other, "--metric",
                             "items_per_second")
            self.assertEqual(done.code, 0 if "items_per_second" in other[0] else 3, done)

    def test_the_headline_counts_what_was_compared(self):
        done = self.both(rows("x", 10) + rows("gone", 10), rows("x", 10, seed="2"))
        self.assertTrue(done.out.startswith("No regression in 1 measurement, 1 missing."), done)
        self.assertEqual(done.code, 0, done)

    def test_a_failed_side_is_no_good_news(self):
        failed = [{"name": "y", "run_type": "iteration", "error_occurred": True, "error_message": "wrong sum"}]
        done = self.both(rows("x", 10) + rows("y", 10), rows("x", 10, seed="2") + failed)
        self.assertEqual(done.code, 3, done)
        self.assertTrue(done.out.startswith("Failed: 1 of 2 measurements; no regression found in the other 1."), done)
        done = self.both(rows("y", 10), failed)
        self.assertTrue(done.out.startswith("Nothing was compared, 1 failed."), done)

    def test_names_of_others_command_neither_terminals_nor_ci_logs(self):
        name = "\033[2Jx\n::error::y"
        done = self.both(rows(name, 10), rows(name, 12, seed="2"))
        self.assertIn("?[2Jx?::error::y", done.out)
        self.assertNotIn("\033", done.out)
        done = self.both(rows("::error::y", 10), [{"name": "::error::y", "run_type": "iteration",
                                                  "error_occurred": True, "error_message": "a\n::error::z"}])
        self.assertFalse([line for line in done.out.splitlines() if line.lstrip().startswith("::")], done)

    def test_a_metric_that_no_benchmark_has_is_refused(self):
        done = self.both(rows("x", 10), rows("x", 10), "--metric", "real_time,cpu_tiem")
        self.assert_refused(done, '--metric: no benchmark has "cpu_tiem"', "did you mean cpu_time?",
                            "cpu_time, real_time")
        self.assertEqual(self.both(rows("x", 10), rows("x", 10), "--metric", "all").code, 0)
        self.assertEqual(self.both(rows("x", 10), [], "--metric", "cpu_time").code, 3)

    def test_aggregates_only_are_inconclusive_with_their_ratio(self):
        def aggregates(value):
            return [{"name": f"x_{kind}", "run_name": "x", "run_type": "aggregate", "aggregate_name": kind,
                     "real_time": value, "time_unit": "ms"} for kind in ("mean", "median", "stddev")]
        row = self.both(aggregates(10), aggregates(12), "--json").json()["rows"][0]
        self.assertEqual(row["verdict"], "INCONCLUSIVE")
        self.assertAlmostEqual(row["change"], 0.2)
        self.assertIn("aggregates only", row["why"])

    def test_missing_and_new_benchmarks_are_listed(self):
        done = self.both(rows("x", 10) + rows("old/128", 5), rows("x", 10, seed="2") + rows("old/129", 5))
        self.assertRegex(done.out, r"MISSING +old/128")
        self.assertRegex(done.out, r"NEW +old/129")
        self.assertIn("old/128 may have been renamed to old/129", done.out)

    def test_files_that_are_none(self):
        good = self.file("good.json", rows("x", 10))
        for name, text in (("empty", ""), ("cut", '{"benchmarks": [{"na'), ("array", "[]"), ("other", "{}"),
                           ("deep", "[" * 100000), ("binary", "\x00\x01")):
            path = self.folder / name
            path.write_text(text)
            with self.subTest(name):
                self.assert_refused(self.compare(path, good), str(path))
                self.assert_refused(self.compare(good, path), str(path))
        self.assert_refused(self.compare(good, self.folder / "none.json"), "none.json", "No such file")
        (self.folder / "also-cut.json").write_text('{"benchmarks": [')
        self.assert_refused(self.compare(good, self.folder), "also-cut.json")

    def test_options_that_make_no_sense(self):
        good = self.file("good.json", rows("x", 10))
        for more, words in ((("--format", "jnit"), ("jnit", "did you mean junit?")),
                            (("--min-effect", "5"), ("--min-effect", "2%")),
                            (("--alpha", "2"), ("--alpha",)),
                            (("--direction", "x=up"), ("--direction", "METRIC=less")),
                            (("--write", "junit"), ("--write", "FORMAT=FILE")),
                            (("--write", "junit=/none/x"), ("/none/x",)),
                            (("--strickt",), ("--strict",))):
            with self.subTest(more):
                self.assert_refused(self.compare(good, good, *more), *words)
        self.assert_refused(programs.run("howmany", "compare", good), "candidate")
        self.assert_refused(programs.run("howmany", "comapre"), "did you mean compare?")

    def test_numbers_that_are_none(self):
        good = self.file("good.json", rows("x", 10))
        done = self.compare(good, good, "--alpha", "nan")
        self.assert_refused(done, '--alpha: expected a number from 1e-06 to 0.5, not "nan"')
        for option in ("--min-time", "--time-budget", "--run-timeout"):
            for value in ("nan", "inf", "0"):
                self.assert_refused(programs.run("howmany", "gate", option, value),
                                    f'{option}: expected a number above 0, not "{value}"')

    def test_what_files_hold_commands_no_terminal(self):
        a = self.file("a.json", rows("x", 10), {**MACHINE, "cpu": "\033[31mred"})
        done = self.compare(a, self.file("b.json", rows("x", 10)))
        self.assert_refused(done, "not comparable", "?[31mred", code=4)
        self.assertNotIn("\033", done.err)
        odd = self.folder / "odd.json"
        odd.write_text(json.dumps({"schema": "\033[31mred", "context": {}, "answer": {}, "measurements": []}))
        done = programs.run("howmany", "report", odd)
        self.assert_refused(done, 'schema is "?[31mred"')
        self.assertNotIn("\033", done.err)

    def test_numbers_of_files_stay_short(self):
        done = self.both(rows("x", 1e-100), rows("x", 1e100))
        self.assertEqual(done.code, 1, done)
        self.assertNotRegex(done.out, r"\d{20}")

    def test_help_has_examples_and_every_format(self):
        done = programs.run("howmany", "compare", "--help")
        self.assertEqual(done.code, 0)
        self.assertIn("howmany compare before.json after.json", done.out)
        for name in FORMATS:
            self.assertIn(f"  {name} ", done.out)


class Formats(Files):
    def setUp(self):
        super().setUp()
        nasty = 'BM_Copy<"a&b", |c|>/8'
        base = (rows("x", 10) + rows(nasty, 10) + rows("few", 1, 2) + rows("gone", 1) + rows("b", 5, bytes=100.0) +
                [{"name": "bad", "real_time": float("nan")}])
        candidate = (rows("x", 10, seed="2") + rows(nasty, 13) + rows("few", 1, 2) + rows("fresh", 1) +
                     rows("b", 5, bytes=101.0) + [{"name": "bad", "real_time": float("inf")}])
        self.nasty = nasty
        args = []
        for name in FORMATS:
            args += ["--write", f"{name}={self.folder / ('out.' + name)}"]
        self.done = self.both(base, candidate, *args)

    def text(self, name):
        return (self.folder / f"out.{name}").read_bytes().decode()

    def strict(self, name):
        return json.loads(self.text(name), parse_constant=refuse)

    def test_all_are_written_in_one_go(self):
        self.assertEqual(self.done.code, 1, self.done)
        self.assertEqual(self.done.out, self.text("text"))
        counts = self.strict("json")["counts"]
        self.assertEqual((counts["SLOWER"], counts["FAILED"], counts["MISSING"], counts["NEW"]), (2, 1, 1, 1))

    def test_junit_counts_what_it_holds(self):
        suite = xml.fromstring(self.text("junit")).find("testsuite")
        cases = suite.findall("testcase")
        self.assertEqual(len(cases), int(suite.get("tests")))
        for tag, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            self.assertEqual(sum(c.find(tag) is not None for c in cases), int(suite.get(count)))
        self.assertIn(self.nasty, [c.get("name") for c in cases])
        self.assertEqual({c.find("failure").get("type") for c in cases if c.find("failure") is not None}, {"regression"})

    def test_annotations_are_workflow_commands(self):
        lines = self.text("annotations").splitlines()
        self.assertTrue(lines[0].startswith("::error title=howmany::Slower: 2 of"))
        self.assertTrue(all(line.startswith("::") for line in lines))
        self.assertIn("+1.00 %25", self.text("annotations"))

    def test_markdown_escapes_what_would_break_the_table(self):
        row = next(line for line in self.text("markdown").splitlines() if "BM" in line)
        self.assertIn('BM\\_Copy\\<"a\\&b", \\|c\\|>/8', row)

    def test_sarif_holds_to_the_schema(self):
        self.check_schema("sarif", "sarif.schema.json")
        results = self.strict("sarif")["runs"][0]["results"]
        self.assertEqual(len(results), 2)
        self.assertTrue(all(r["locations"] and r["partialFingerprints"] for r in results))

    def check_schema(self, name, schema):
        done = subprocess.run([sys.executable, HERE.parents[1] / "support" / "check_schema.py", HERE / "schemas" / schema,
                               self.folder / f"out.{name}"], capture_output=True, text=True)
        if done.returncode == 77:
            self.skipTest("python3-jsonschema is not installed")
        self.assertEqual(done.returncode, 0, done.stderr)


programs.main()
