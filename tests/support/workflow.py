# SPDX-License-Identifier: Apache-2.0
"""Reads workflows of GitHub, an action, and jobs of GitLab, and runs their steps as the runners do."""
import os
import re
import subprocess
import unittest

try:
    import yaml
except ImportError:
    raise unittest.SkipTest("needs python3-yaml")

EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")
# A step without `shell` runs in the first: a pipe may fail unnoticed.
SHELLS = {None: ["bash", "-e", "-c"], "bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]}


def read(path):
    """Returns the YAML of a file. GitHub's key `on` is True in it, as PyYAML reads YAML 1.1."""
    return yaml.safe_load(path.read_text())


def steps(job):
    """Returns {name: step} of a job's steps that run commands."""
    return {step["name"]: step for step in job["steps"] if "run" in step}


def run_step(step, folder, values, **environment):
    """Runs a step in the folder. `values` has the values of the expressions in its `env`."""
    own = {name: EXPRESSION.sub(lambda match: values[match[1]], str(value))
           for name, value in step.get("env", {}).items()}
    return subprocess.run([*SHELLS[step.get("shell")], step["run"]], cwd=folder, text=True, capture_output=True,
                          env={**os.environ, **environment, **own}, check=False)


def run_gitlab(job, folder, **environment):
    """Runs a job of GitLab in the folder: before_script and script in one shell."""
    script = "\n".join(["set -eo pipefail", *job["before_script"], *job["script"]])
    own = {name: str(value) for name, value in job["variables"].items()}
    return subprocess.run(["bash", "-c", script], cwd=folder, text=True, capture_output=True,
                          env={**os.environ, **own, **environment}, check=False)
