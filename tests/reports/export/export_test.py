# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only quick
"""Tests `howmany report --export` with libraries that only record their calls."""
import json
import os
import pathlib
import stat
import subprocess
import sys

import programs

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import exported  # noqa: E402

MLFLOW = """
import json, os, types
calls = []
class MlflowClient:
    def __init__(self, **named):
        assert not os.path.exists("fail"), "token abc\\nand more"
        calls.append(["client", named, dict(os.environ)])
    def __getattr__(self, name):
        def call(*words, **named):
            calls.append([name, words, named])
            json.dump(calls, open(os.environ["RECORD"], "w"), default=vars)
            print("printed")
            info = types.SimpleNamespace(run_id="r1")
            run = types.SimpleNamespace(info=info)
            return {"get_experiment_by_name": None, "create_experiment": "7"}.get(name, run)
        return call
"""
ENTITIES = """
class Metric:
    def __init__(self, *words): self.words = words
Param = RunTag = Metric
"""
WANDB = """
import json, os
calls = []
class Run(dict):
    dir, summary = os.getcwd() + "/wandb/offline-run-1/files", {}
    def define_metric(self, *words, **named): calls.append(["define_metric", words, named])
    def log(self, values): calls.append(["log", values])
    def finish(self):
        calls.append(["finish", self.summary])
        json.dump(calls, open(os.environ["RECORD"], "w"))
def init(**named):
    calls.append(["init", named, dict(os.environ)])
    return Run()
"""


class Export(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.run_file = exported.written(self.folder)
        self.libraries = self.folder / "libraries"
        (self.libraries / "mlflow").mkdir(parents=True)
        (self.libraries / "mlflow/__init__.py").write_text(MLFLOW)
        (self.libraries / "mlflow/entities.py").write_text(ENTITIES)
        (self.libraries / "wandb.py").write_text(WANDB)
        self.out = self.folder / "out"

    def report(self, *words, **environment):
        environment.setdefault("PYTHONPATH", str(self.libraries))
        environment.setdefault("RECORD", str(self.folder / "calls.json"))
        return programs.run("howmany", "report", self.run_file, *words, **environment)

    def calls(self):
        return json.loads((self.folder / "calls.json").read_text())

    def python(self, *words):
        """Returns a program that starts this Python with these options."""
        path = self.folder / "own_python"
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {" ".join(words)} "$@"\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def test_the_answer_is_printed_as_without_an_export(self):
        plain = self.report()
        done = self.report("--export", f"openmetrics:{self.out}", "--export", f"mlflow:{self.folder / 'runs'}")
        self.assertEqual((done.code, done.out), (0, plain.out), done)
        self.assertEqual([line.split(":")[0] for line in done.err.splitlines()], ["openmetrics", "mlflow"], done)
        self.assertTrue(self.out.read_text().endswith("# EOF\n"))
        self.assertEqual([path.name for path in self.folder.glob(".howmany*")], [])

    def test_json_is_printed_as_without_an_export(self):
        done = self.report("--json", "--export", f"openmetrics:{self.out}")
        self.assertEqual(done.json(), self.report("--json").json())

    def test_mlflow_has_the_rows_by_number_of_devices(self):
        done = self.report("--export", f"mlflow:{self.out}")
        self.assertEqual(done.code, 0, done)
        calls = self.calls()
        metrics = {(metric["words"][0], metric["words"][3]): metric["words"][1]
                   for name, _, named in calls if name == "log_batch" for metric in named.get("metrics", [])}
        for devices, (value, low, high) in exported.measured("efficiency").items():
            self.assertEqual(metrics["measured/efficiency_ratio", devices], value)
            self.assertEqual(metrics.get(("measured/efficiency_low_ratio", devices)), low)
            self.assertEqual(metrics.get(("measured/efficiency_high_ratio", devices)), high)
        for devices, (value, _, _) in exported.measured("median_s").items():
            self.assertEqual(metrics["measured/step_time_seconds", devices], value)
        self.assertEqual(metrics["rehearsed/throughput_samples_per_second", 8], 15000)
        self.assertEqual(metrics["predicted/efficiency_low_ratio", 16], 0.7 * 0.9)
        self.assertEqual(metrics["predicted/recommended_devices", 0], 8)
        self.assertNotIn(("measured/efficiency_ratio", 8), metrics)
        texts = {word["words"][0]: word["words"][1] for name, _, named in calls if name == "log_batch"
                 for kind in ("params", "tags") for word in named.get(kind, [])}
        self.assertEqual(texts["model"], "train_ddp.py")
        self.assertEqual(texts["cluster"], "a100x8")
        self.assertEqual(texts["device_counts"], "1,2,4,8,16")
        self.assertEqual(texts["howmany.evidence"], "measured,predicted,rehearsed")
        self.assertEqual(texts["howmany.commit"], "0bc233c2f06b")

    def test_mlflow_writes_a_local_store_whatever_is_set(self):
        (self.libraries / "sqlalchemy.py").touch()
        (self.libraries / "alembic.py").touch()
        self.report("--export", f"mlflow:{self.out}", MLFLOW_TRACKING_URI="https://host.invalid",
                    MLFLOW_TRACKING_TOKEN=exported.SECRET, MLFLOW_EXPERIMENT_NAME="mine")
        _, named, environment = self.calls()[0]
        self.assertEqual(named, {"tracking_uri": f"sqlite:///{self.out}/mlflow.db",
                                 "registry_uri": f"sqlite:///{self.out}/mlflow.db"})
        self.assertEqual({name for name in environment if name.startswith("MLFLOW_")},
                         {"MLFLOW_EXPERIMENT_NAME", "MLFLOW_ALLOW_FILE_STORE", "MLFLOW_DISABLE_TELEMETRY"})
        self.assertIn(["create_experiment", ["mine"], {}], self.calls())

    def test_mlflow_keeps_to_the_store_that_a_folder_has(self):
        (self.libraries / "sqlalchemy.py").touch()
        (self.libraries / "alembic.py").touch()
        (self.out / "0").mkdir(parents=True)
        (self.out / "0/meta.yaml").touch()
        done = self.report("--export", f"mlflow:{self.out}")
        self.assertEqual(self.calls()[0][1]["tracking_uri"], f"file://{self.out}", done)

    def test_wandb_has_the_rows_by_number_of_devices(self):
        done = self.report("--export", f"wandb:{self.out}")
        self.assertEqual(done.code, 0, done)
        self.assertIn("wandb sync", done.err)
        calls = self.calls()
        logged = [call[1] for call in calls if call[0] == "log"]
        self.assertEqual([point["devices"] for point in logged], [1, 2, 4, 8, 16])
        steps = exported.measured("median_s")
        self.assertEqual([point["measured/step_time_seconds"] for point in logged[:3]],
                         [steps[devices][0] for devices in (1, 2, 4)])
        self.assertEqual([key for key in logged[4] if not key.startswith("predicted/")], ["devices"])
        config = calls[0][1]["config"]
        self.assertEqual((config["model"], config["cluster"], config["date"]),
                         ("train_ddp.py", "a100x8", "2026-11-30T00:42:06Z"))
        self.assertIn("version:0.3.0", calls[0][1]["tags"])

    def test_wandb_is_offline_whatever_is_set(self):
        self.report("--export", f"wandb:{self.out}", WANDB_MODE="online", WANDB_API_KEY=exported.SECRET,
                    WANDB_RUN_ID="r", WANDB_PROJECT="mine")
        _, named, environment = self.calls()[0]
        self.assertEqual((named["mode"], named["project"], named["dir"]), ("offline", "mine", str(self.out)))
        self.assertEqual(environment["WANDB_MODE"], "offline")
        self.assertNotIn("WANDB_RUN_ID", environment)
        self.assertNotIn("WANDB_API_KEY", environment)

    def test_no_export_has_environment_paths_or_hosts(self):
        self.report("--export", f"openmetrics:{self.out}")
        self.assertNotIn(exported.SECRET, self.out.read_text())
        for kind in ("mlflow", "wandb"):
            self.report("--export", f"{kind}:{self.folder / kind}")
            text = json.dumps([call[:2] if call[0] in ("init", "client") else call for call in self.calls()])
            self.assertIn("train_ddp.py", text)
            self.assertNotIn(exported.SECRET, text)

    def test_a_library_that_is_not_there_is_named_with_its_remedy(self):
        python = self.python("-I", "-S")
        for library in ("mlflow", "wandb"):
            done = self.report("--export", f"{library}:{self.out}", "--python", python)
            self.assert_refused(done, f"{python} -m pip install {library}", "--python")
        self.assert_refused(self.report("--export", f"wandb:{self.out}", "--python", self.folder / "none"), "none")
        self.assertFalse(self.out.exists())

    def test_a_library_in_the_current_folder_is_not_used(self):
        python = self.python("-S")
        done = subprocess.run([programs.BIN.resolve() / "howmany", "report", self.run_file, "--export",
                                        f"wandb:{self.out}", "--python", python], cwd=self.libraries,
                                       capture_output=True, text=True, check=False,
                                       env={**os.environ, "PYTHONPATH": "", "RECORD": str(self.folder / "calls.json")})
        self.assertEqual(done.returncode, 2, done)
        self.assertFalse((self.folder / "calls.json").exists())

    def test_a_folder_of_results_is_not_the_library(self):
        (self.folder / "results/wandb").mkdir(parents=True)
        done = self.report("--export", f"wandb:{self.out}", "--python", self.python("-S"),
                           PYTHONPATH=str(self.folder / "results"))
        self.assert_refused(done, "pip install wandb")

    def test_what_cannot_be_written_is_refused(self):
        self.out.mkdir()
        (self.out / "fail").touch()
        self.assert_refused(self.report("--export", f"mlflow:{self.out}"), "--export mlflow", "token abc")
        self.assert_refused(self.report("--export", f"wandb:{self.run_file}"), "--export wandb")
        self.assert_refused(self.report("--export", f"openmetrics:{self.folder}/none/x.prom"), "none/x.prom")
        (self.libraries / "wandb.py").write_text("import os\nos._exit(9)\n")
        self.assert_refused(self.report("--export", f"wandb:{self.out}"), "--export wandb", "exited with 9")

    def test_wrong_requests_are_refused(self):
        self.assert_refused(self.report("--export", "mlfow:x"), "mlfow", "mlflow")
        self.assert_refused(self.report("--export", "mlflow"), "KIND:PATH")
        self.assert_refused(self.report("--python", "python3"), "--export")
        self.assert_refused(self.report(self.run_file, "--export", f"openmetrics:{self.out}"), "--export", "one run")
        workers = exported.ROOT / "docs/results/guide/workers/summary.json"
        self.assert_refused(programs.run("howmany", "report", workers, "--export", f"openmetrics:{self.out}"),
                            "--export", "howmany workers")

    def test_an_answer_without_a_valid_row_is_refused(self):
        made = exported.summary()
        made["answer"]["beyond"] = {"refused": "no rate was measured"}
        for measurement in made["measurements"]:
            measurement["flags"] = ["failed: it crashed"]
        self.run_file = exported.written(self.folder, made)
        self.assert_refused(self.report("--export", f"openmetrics:{self.out}"), "nothing to export")
        self.assertFalse(self.out.exists())

    def test_help_lists_the_kinds(self):
        text = programs.run("howmany", "report", "--help").out
        for kind in ("openmetrics", "mlflow", "wandb"):
            self.assertRegex(text, rf"(?m)^  {kind} +\w")


if __name__ == "__main__":
    programs.main()
