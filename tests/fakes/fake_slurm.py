# SPDX-License-Identifier: Apache-2.0
"""Fake programs of Slurm in a folder `bin`: sbatch numbers the jobs from 101 and keeps their words, squeue and sacct
print the states that a test sets."""
import shlex

SBATCH = """#!/bin/sh
cd {folder}
[ ! -e refusal ] || {{ cat refusal >&2; exit 1; }}
id=$((101 + $(ls jobs | wc -l)))
printf '%s\\n' "$@" > jobs/$id
echo PENDING > states/$id
echo "$id"
"""
# $1: the file that must be there
ASK = """#!/bin/sh
cd {folder}
[ -e {kind} ] || {{ echo "{refusal}" >&2; exit 1; }}
for id in $(ls states); do echo "$id|$(cat states/$id)"; done
"""
# On a login node none of these may start.
FORBIDDEN = """#!/bin/sh
echo "$0" >> {folder}/forbidden
exit 1
"""


class Slurm:
    def __init__(self, folder):
        self.folder = folder
        for name in ("bin", "jobs", "states", "benches"):
            (folder / name).mkdir(parents=True)
        where = shlex.quote(str(folder))
        self._add("bin/sbatch", SBATCH.format(folder=where))
        self._add("bin/squeue", ASK.format(folder=where, kind="queue", refusal="Unable to contact slurm controller"))
        self._add("bin/sacct", ASK.format(folder=where, kind="accounting",
                                          refusal="Slurm accounting storage is disabled"))
        for name in ("bin/python", "bin/python3", "bin/torchrun", "bin/srun", "bin/scontrol", "benches/howmany-devices",
                     "benches/howmany-train", "benches/speedup_bench", "benches/script_bench"):
            self._add(name, FORBIDDEN.format(folder=where))
        (folder / "queue").touch()

    def _add(self, name, text):
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def environment(self, path):
        return {"PATH": f"{self.folder}/bin:{path}", "HOWMANY_BENCH_DIR": f"{self.folder}/benches"}

    def jobs(self):
        """The words of sbatch by the number of the job."""
        return {job.name: job.read_text().splitlines() for job in sorted((self.folder / "jobs").iterdir())}

    def set_state(self, job, state):
        (self.folder / "states" / job).write_text(state)

    def forget(self, job):
        (self.folder / "states" / job).unlink()

    def refuse(self, why):
        (self.folder / "refusal").write_text(why + "\n")

    def accept(self):
        (self.folder / "refusal").unlink()

    def started(self):
        """The forbidden programs that ran."""
        log = self.folder / "forbidden"
        return log.read_text().splitlines() if log.exists() else []
