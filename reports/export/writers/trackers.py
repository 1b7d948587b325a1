# SPDX-License-Identifier: Apache-2.0
"""Reads runs as JSON from stdin and writes them into a folder, with MLflow or W&B of this Python:
  python trackers.py LIBRARY FOLDER
Sends nothing. Prints {"found": true if the library is there, "problem": "" or the error, "done": the command that opens
the runs}. Removes the current folder from the path first, so that a file there cannot replace a library."""
import sys
sys.path[:] = [folder for folder in sys.path if folder]
import glob
import importlib.util
import json
import os
import pathlib
import shlex
import time

MOST_METRICS = 500  # of a call of MLflow


def has(*modules):
    """Returns false for a plain folder of that name too, such as the results of W&B."""
    return all(getattr(importlib.util.find_spec(module), "origin", None) for module in modules)


def set_environment(prefix, values, kept=()):
    """Replaces the library's variables: they can name a server, an account or another run."""
    for name in list(os.environ):
        if name.startswith(prefix) and name not in kept:
            del os.environ[name]
    os.environ.update(values)


def write_mlflow(folder, runs):
    """Uses the store that the folder has, else SQLite. MLflow without SQLAlchemy, as mlflow-skinny, has files only."""
    set_environment("MLFLOW_", {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true",
                                "MLFLOW_ALLOW_FILE_STORE": "true"}, ("MLFLOW_EXPERIMENT_NAME",))
    database, files = os.path.join(folder, "mlflow.db"), glob.glob(os.path.join(glob.escape(folder), "*", "meta.yaml"))
    uri = "sqlite:///" + database
    if not os.path.exists(database) and (files or not has("sqlalchemy", "alembic")):
        uri = pathlib.Path(folder).as_uri()
    import mlflow
    from mlflow.entities import Metric, Param, RunTag
    client = mlflow.MlflowClient(tracking_uri=uri, registry_uri=uri)
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "howmany")
    experiment = client.get_experiment_by_name(name)
    number = experiment.experiment_id if experiment else client.create_experiment(name)
    for run in runs:
        at = int(1000 * (run["unix_seconds"] or time.time()))
        metrics = [Metric(key, value, at, 0) for key, value in run["totals"].items()]
        metrics += [Metric(key, value, at, point["devices"])
                    for point in run["points"] for key, value in point["metrics"].items()]
        tags = [RunTag("howmany." + key, value) for key, value in run["tags"].items()]
        tags += [RunTag("mlflow.runName", run["name"]), RunTag("mlflow.note.content", run["because"])]
        made = client.create_run(number, start_time=at).info.run_id
        client.log_batch(made, params=[Param(key, value) for key, value in run["params"].items()], tags=tags)
        for start in range(0, len(metrics), MOST_METRICS):
            client.log_batch(made, metrics=metrics[start:start + MOST_METRICS])
        client.set_terminated(made, end_time=at)
    allowed = "MLFLOW_ALLOW_FILE_STORE=true " if uri.startswith("file:") else ""
    return allowed + "mlflow ui --backend-store-uri " + shlex.quote(uri)


def write_wandb(folder, runs):
    """Leaves out what W&B adds by itself: the host, its user, packages, git and the program."""
    set_environment("WANDB_", {
        "WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_CONSOLE": "off", "WANDB_HOST": "unknown",
        "WANDB_ERROR_REPORTING": "false",
        "WANDB_DISABLE_GIT": "true", "WANDB_DISABLE_CODE": "true", "WANDB_DISABLE_JOB_CREATION": "true",
        "WANDB_X_DISABLE_META": "true", "WANDB_X_DISABLE_STATS": "true", "WANDB_X_DISABLE_MACHINE_INFO": "true",
        "WANDB_X_SAVE_REQUIREMENTS": "false",
        # Before 0.19:
        "WANDB__DISABLE_META": "true", "WANDB__DISABLE_STATS": "true", "WANDB__SAVE_REQUIREMENTS": "false",
    }, ("WANDB_PROJECT", "WANDB_ENTITY"))
    import wandb
    folders = []
    for run in runs:
        config = dict(run["params"], **run["tags"])
        if run["unix_seconds"]:
            config["date"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(run["unix_seconds"]))
        made = wandb.init(project=os.environ.get("WANDB_PROJECT", "howmany"), dir=folder, name=run["name"] or None,
                          config=config, notes=run["because"], mode="offline",
                          tags=["{}:{}".format(*tag)[:64] for tag in run["tags"].items()])
        made.define_metric("devices")
        made.define_metric("*", step_metric="devices")
        for point in run["points"]:
            made.log(dict(point["metrics"], devices=point["devices"]))
        for key, value in run["totals"].items():
            made.summary[key] = value
        folders.append(os.path.dirname(made.dir))
        made.finish()
    return "wandb sync " + " ".join(map(shlex.quote, folders))


def main(library, folder):
    if not has(library):
        return {"found": False, "problem": "", "done": ""}
    try:
        os.makedirs(folder, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):  # W&B would use a temporary folder
            raise PermissionError("cannot write to " + folder)
        os.chdir(folder)
        done = {"mlflow": write_mlflow, "wandb": write_wandb}[library](folder, json.load(sys.stdin))
        return {"found": True, "problem": "", "done": done}
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return {"found": True, "problem": lines[0][:300], "done": ""}


answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # libraries may print
print(json.dumps(main(*sys.argv[1:])), file=answers, flush=True)
