# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 600
"""Tests `howmany report --export` with MLflow, W&B, the parsers of prometheus_client (tools.txt) and node_exporter. The
exports are written without a network, if the system allows a namespace."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import unittest
import urllib.request

import packed
import programs

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import exported  # noqa: E402

TOOLS = pathlib.Path(__file__).parent / "tools.txt"
NODE_EXPORTER = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
OFFLINE = ["unshare", "-rn"]
READ_MLFLOW = """
import json, sys, mlflow
client = mlflow.MlflowClient(tracking_uri=sys.argv[1], registry_uri=sys.argv[1])
number = client.get_experiment_by_name("howmany").experiment_id
def of(run):
    history = {key: {point.step: point.value for point in client.get_metric_history(run.info.run_id, key)}
               for key in run.data.metrics}
    return {"name": run.info.run_name, "status": run.info.status, "start": run.info.start_time,
            "params": run.data.params, "tags": run.data.tags, "metrics": history}
print(json.dumps([of(run) for run in client.search_runs([number])]))
"""
# The file has the format of LevelDB's log: blocks of 32 KiB, records of (checksum, length, type).
READ_WANDB = """
import json, struct, sys
from wandb.proto.wandb_internal_pb2 import Record
data, at, part, rows, runs, summary, files = open(sys.argv[1], "rb").read(), 7, b"", [], [], {}, []
def value(item): return json.loads(item.value_json)
while at + 7 <= len(data):
    if 32768 - at % 32768 < 7:
        at += 32768 - at % 32768
        continue
    _, length, kind = struct.unpack("<IHB", data[at:at + 7])
    part += data[at + 7:at + 7 + length]
    at += 7 + length
    if kind not in (1, 4):
        continue
    record, part = Record.FromString(part), b""
    if record.history.item:
        rows.append({item.key or item.nested_key[0]: value(item) for item in record.history.item})
    for item in record.summary.update:
        summary[item.key or item.nested_key[0]] = value(item)
    files += [item.path for item in record.files.files]
    if record.HasField("run"):
        config = {item.key: value(item) for item in record.run.config.update}
        runs.append({"name": record.run.display_name, "project": record.run.project, "tags": list(record.run.tags),
                     "notes": record.run.notes, "host": record.run.host, "config": config})
print(json.dumps({"runs": runs, "rows": rows, "summary": summary, "files": files}))
"""
READ_METRICS = """
import json, sys
from prometheus_client import openmetrics, parser
import prometheus_client.openmetrics.parser
text = open(sys.argv[1]).read()
def read(parse):
    return [[family.name, family.type, family.unit, family.documentation,
             [[sample.name, sample.labels, sample.value] for sample in family.samples]] for family in parse(text)]
print(json.dumps([read(module.text_string_to_metric_families) for module in (openmetrics.parser, parser)]))
"""


class Libraries(programs.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = packed.tools(TOOLS) / "python"
        allowed = shutil.which("unshare") and subprocess.run([*OFFLINE, "true"], capture_output=True, check=False)
        cls.offline = OFFLINE if allowed and allowed.returncode == 0 else []

    def export(self, *exports, made=None, python=None):
        words = [word for export in exports for word in ("--export", export)]
        if any(not export.startswith("openmetrics") for export in exports):
            words += ["--python", str(python or self.python)]
        environment = {**os.environ, "HOME": str(self.folder), "WANDB_API_KEY": exported.SECRET,
                       "MLFLOW_TRACKING_TOKEN": exported.SECRET}
        done = subprocess.run([*self.offline, programs.BIN.resolve() / "howmany", "report",
                               exported.written(self.folder, made), *words], capture_output=True, text=True,
                              check=False, cwd=self.folder, env=environment)
        self.assertEqual(done.returncode, 0, done)
        return done

    def read(self, code, *words):
        done = subprocess.run([self.python, "-W", "ignore", "-c", code, *words], capture_output=True, text=True,
                              check=False, cwd=self.folder,
                              env={**os.environ, "HOME": str(self.folder), "MLFLOW_ALLOW_FILE_STORE": "true"})
        self.assertEqual(done.returncode, 0, done)
        return json.loads(done.stdout.splitlines()[-1])

    def assert_no_secret(self, folder):
        files = [path for path in folder.rglob("*") if path.is_file()]
        self.assertTrue(files)
        for path in files:
            self.assertNotIn(exported.SECRET.encode(), path.read_bytes(), path)

    def assert_is_the_run(self, run):
        self.assertEqual((run["name"], run["status"]), ("train_ddp.py", "FINISHED"))
        self.assertEqual(run["params"]["device_counts"], "1,2,4,8,16")
        self.assertEqual(run["tags"]["howmany.version"], "0.3.0")
        self.assertIn("train_ddp.py", run["tags"]["mlflow.note.content"])
        for name, key in (("median_s", "measured/step_time_seconds"), ("efficiency", "measured/efficiency_ratio"),
                          ("samples_per_s", "measured/throughput_samples_per_second"),
                          ("speedup", "measured/speedup_ratio")):
            expected = {str(devices): metric[0] for devices, metric in exported.measured(name).items()}
            self.assertEqual(run["metrics"][key], expected)
        self.assertEqual(run["metrics"]["predicted/efficiency_ratio"], {"16": 0.7})
        self.assertEqual(run["metrics"]["predicted/recommended_devices"], {"0": 8})

    def test_mlflow_reads_its_database(self):
        folder = self.folder / "a store"
        done = self.export(f"mlflow:{folder}")
        self.assertIn("sqlite:///", done.stderr)
        runs = self.read(READ_MLFLOW, f"sqlite:///{folder}/mlflow.db")
        self.assertEqual(len(runs), 1)
        self.assert_is_the_run(runs[0])
        self.export(f"mlflow:{folder}")
        self.assertEqual(len(self.read(READ_MLFLOW, f"sqlite:///{folder}/mlflow.db")), 2)
        self.assert_no_secret(folder)
        self.assertEqual({path.name for path in self.folder.iterdir() if not path.name.startswith(".")},
                         {"answer.json", "a store"})

    @programs.nightly
    def test_mlflow_without_sqlalchemy_writes_files(self):
        hidden = self.folder / ".hidden"
        hidden.mkdir()
        (hidden / "sitecustomize.py").write_text("import sys\nsys.modules['sqlalchemy'] = None\nimport importlib.util\n"
                                                 "find = importlib.util.find_spec\n"
                                                 "importlib.util.find_spec = lambda name, *rest: None if name == "
                                                 "'sqlalchemy' else find(name, *rest)\n")
        python = hidden / "python"
        python.write_text(f'#!/bin/sh\nPYTHONPATH={hidden} exec {self.python} "$@"\n')
        python.chmod(0o755)
        folder = self.folder / "my files"
        self.export(f"mlflow:{folder}", python=python)
        self.assertFalse((folder / "mlflow.db").exists())
        self.assert_is_the_run(self.read(READ_MLFLOW, folder.as_uri())[0])
        self.export(f"mlflow:{folder}")  # now with SQLAlchemy
        self.assertEqual(len(self.read(READ_MLFLOW, folder.as_uri())), 2)

    def test_wandb_writes_an_offline_run(self):
        folder = self.folder / "offline"
        self.export(f"wandb:{folder}")
        files = list(folder.glob("wandb/offline-run-*/run-*.wandb"))
        self.assertEqual(len(files), 1)
        found = self.read(READ_WANDB, files[0])
        rows = found["rows"]
        self.assertEqual([row["devices"] for row in rows], [1, 2, 4, 8, 16])
        for name, key in (("median_s", "measured/step_time_seconds"), ("speedup", "measured/speedup_ratio")):
            expected = [metric[0] for _, metric in sorted(exported.measured(name).items())]
            self.assertEqual([row[key] for row in rows if key in row], expected)
        self.assertEqual(rows[3]["rehearsed/efficiency_ratio"], 0.85)
        self.assertEqual(found["summary"]["predicted/recommended_devices"], 8)
        run = found["runs"][-1]
        self.assertEqual((run["name"], run["project"], run["host"]), ("train_ddp.py", "howmany", "unknown"))
        self.assertEqual(run["config"]["model"], "train_ddp.py")
        self.assertIn("evidence:measured,predicted,rehearsed", run["tags"])
        written = {path.name for path in (files[0].parent / "files").rglob("*")}
        self.assertFalse(written & {"wandb-metadata.json", "requirements.txt"}, written)
        self.assert_no_secret(folder)

    def test_both_parsers_read_the_text_alike(self):
        made = exported.summary()
        hostile = 'a"} 1\n# EOF\\ \u2028ü\r{x="'
        for measurement in made["measurements"]:
            measurement["parameters"]["model"] = hostile
        for model in ("train_ddp.py", hostile):
            path = self.folder / "howmany.prom"
            self.export(f"openmetrics:{path}", made=made if model == hostile else None)
            open_metrics, prometheus = self.read(READ_METRICS, path)
            self.assertEqual([family[:2] + family[3:] for family in open_metrics],
                             [family[:2] + family[3:] for family in prometheus])
            families = {family[0]: family for family in open_metrics}
            self.assertEqual({family[1] for family in open_metrics}, {"gauge"})
            self.assertEqual(families["howmany_step_time_seconds"][2], "seconds")
            values = {int(labels["devices"]): value for _, labels, value in families["howmany_step_time_seconds"][4]}
            self.assertEqual(values, {devices: metric[0] for devices, metric in exported.measured("median_s").items()})
            names = {labels["model"] for family in open_metrics for _, labels, _ in family[4]}
            self.assertEqual(len(names), 1)
            self.assertTrue(all(family[0].startswith("howmany_") and family[3] for family in open_metrics))

    @unittest.skipUnless(NODE_EXPORTER, "no node_exporter")
    def test_node_exporter_reads_the_text(self):
        path = self.folder / "metrics/howmany.prom"
        path.parent.mkdir()
        self.export(f"openmetrics:{path}")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = "127.0.0.1:{}".format(free.getsockname()[1])
        self.popen(NODE_EXPORTER, "--collector.disable-defaults", "--collector.textfile",
                   f"--collector.textfile.directory={path.parent}", f"--web.listen-address={address}",
                   stderr=subprocess.DEVNULL)

        def scraped():
            try:
                return urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read().decode()
            except OSError:
                return None

        text = self.wait_until("node_exporter", scraped)
        self.assertIn("\nnode_textfile_scrape_error 0\n", text)
        wanted = {line for line in path.read_text().splitlines() if line.startswith("howmany_efficiency_ratio{")}
        self.assertEqual(sum(line.startswith("howmany_efficiency_ratio{") for line in text.splitlines()), len(wanted))


if __name__ == "__main__":
    programs.main()
