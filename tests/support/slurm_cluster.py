# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster of this host with munge, in a folder of its own and on ports of its own. It needs
no systemd and changes nothing outside the folder."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

PATIENCE = 60


class CannotStart(Exception):
    pass


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


class Cluster:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hm_slurm_"))
        self.started = []
        try:
            self._start()
        except Exception:
            self.stop()
            raise

    def stop(self):
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def environment(self):
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *command, timeout=PATIENCE):
        """Runs a Slurm command, or a command under srun."""
        return subprocess.run(list(map(str, command)), env=self.environment, text=True, timeout=timeout,
                              capture_output=True, errors="replace", cwd=self.folder)

    def _daemon(self, name, *command):
        with open(self.folder / f"{name}.out", "w") as log:
            process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.started.append(process)
        return process

    def _start(self):
        programs = self.programs = {}
        for name in ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol"):
            programs[name] = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
            if programs[name] is None:
                raise CannotStart(f"{name} is not installed (slurm-wlm, munge)")
        if os.geteuid() != 0:
            raise CannotStart("slurmd starts the tasks of other users, so it needs root")
        self.folder.chmod(0o755)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        munge_socket = self.folder / "munge.socket"
        self._daemon("munged", programs["munged"], "--foreground", "--force", f"--key-file={key}",
                     f"--socket={munge_socket}", f"--pid-file={self.folder}/munged.pid",
                     f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munged.seed")
        self._wait("munged", munge_socket.exists)
        nodes = self._start_slurm()
        self._wait(f"{nodes} idle nodes",
                   lambda: self.run("scontrol", "show", "node").stdout.count("State=IDLE") == nodes)

    def _start_slurm(self):
        """Returns the number of nodes."""
        host = socket.gethostname().split(".")[0]
        self._write_configuration(f"{host}(127.0.0.1)", "affinity", f"NodeName={host} NodeAddr=127.0.0.1")
        self._daemon("slurmctld", self.programs["slurmctld"], "-D", "-i")
        self._daemon("slurmd", self.programs["slurmd"], "-D")
        return 1

    def _write_configuration(self, control, task_plugin, *nodes, cores=len(os.sched_getaffinity(0))):
        lines = "\n".join(f"{node} CPUs={cores} State=UNKNOWN" for node in nodes)
        (self.folder / "state").mkdir()
        (self.folder / "slurm.conf").write_text(f"""
ClusterName=test
SlurmctldHost={control}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge.socket
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool-%n
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd-%n.pid
SlurmctldLogFile={self.folder}/slurmctld.log
SlurmdLogFile={self.folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/{task_plugin}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1
KillWait=5
SlurmdParameters=config_overrides
{lines}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")

    def _wait(self, what, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            dead = [p.args[0] for p in self.started if p.poll() is not None]
            if dead or time.monotonic() > end:
                raise CannotStart(f"no {what}; {self._last_words()}")
            time.sleep(0.1)

    def _last_words(self):
        logs = [*self.folder.glob("*.out"), *self.folder.glob("*.log")]
        lines = [f"{log.name}: {line}" for log in logs for line in log.read_text().splitlines()[-3:]]
        return " | ".join(lines) or "no log"
