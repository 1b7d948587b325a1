# SPDX-License-Identifier: Apache-2.0
"""For tests of `howmany report --export`: a recorded run, with predicted rows and secrets added."""
import json
import os
import pathlib

ROOT = pathlib.Path(os.environ["HOWMANY_SOURCE"])
RECORDED = ROOT / "docs/results/guide/nodes/summary.json"
SECRET = "s3cr3t"


def row(devices, rate, efficiency):
    return {"devices": devices, "samples_per_s": rate, "low": rate * 0.9, "high": rate * 1.1, "rung": "some",
            "efficiency": efficiency, "efficiency_low": efficiency * 0.9, "efficiency_high": efficiency * 1.1}


def summary():
    """Returns a summary of measured rows on 1, 2 and 4 devices, a rehearsed one on 8 and a predicted one on 16. It has
    SECRET in each place from which nothing is exported."""
    made = json.loads(RECORDED.read_text())
    made["answer"]["beyond"] = {
        "what": "train_ddp.py", "cluster": "a100x8", "computed": False, "basis": "", "scaling": "weak", "spread": 0.1,
        "recommended": 8, "because": "Use 8 GPUs.", "notes": [], "noun": "GPU", "min_efficiency": 0.8, "samples": None,
        "finish_within_hours": None, "budget_device_hours": None, "price_per_device_hour": None, "devices_per_node": 8,
        "interval": 0.9, "measured": [{"devices": 1, "samples_per_s": 2173.0, "efficiency": 1.0}],
        "rehearsed": [row(8, 15000.0, 0.85)], "predicted": [row(16, 24000.0, 0.7), {"devices": 32, "refused": "no"}]}
    for key in ("executable", "host_name", "script_environment"):
        made["context"][key] = SECRET
    made["context"]["howmany_request"]["script"]["command"] = SECRET
    for measurement in made["measurements"]:
        measurement["parameters"].update(python=f"/home/{SECRET}/bin/python", device_list=f"cpu:0,{SECRET}")
        measurement["flags"] = [f"the script printed {SECRET}"]
    return made


def written(folder, made=None):
    path = folder / "answer.json"
    path.write_text(json.dumps(made or summary()))
    return path


def measured(name):
    """Returns {devices: (value, low, high)} of a metric of the recorded rows."""
    rows = {}
    for measurement in json.loads(RECORDED.read_text())["measurements"]:
        metric = measurement["metrics"].get(name)
        if metric:
            rows[int(measurement["parameters"]["devices"])] = (metric["value"], metric["low"], metric["high"])
    return rows
