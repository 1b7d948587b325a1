# SPDX-License-Identifier: Apache-2.0
# labels: slurm process torch
# timeout: 900
"""`howmany gpus -- python train.py` on the login node of a real Slurm job of two hosts."""

import pathlib
import re
import subprocess
import sys

import programs
from allocation import Allocation
from torch_scripts import PYTHON, SCRIPTS, needs_torch

SCRIPT = SCRIPTS / "slurm_nodes.py"
VERSION = "import torch, pathlib; print(pathlib.Path(torch.__file__).with_name('version.py'))"

PORT = 29777
LISTENER = """
import socket, sys, time
listener = socket.create_server(("", int(sys.argv[1])))
print("listens", flush=True)
time.sleep(300)
"""


@needs_torch
class OwnScript(Allocation):
    def check_group(self, result, ranks=2):
        """The group on two hosts was measured, with the records of all ranks."""
        self.assertEqual(result.code, 0, result)
        row = self.rows()[2, 2]
        self.assertEqual((row["metrics"]["ranks"]["value"], row["parameters"]["mode"]), (ranks, "ddp"))
        return self.summary()["context"]["howmany_request"]

    def test_measures_two_hosts_and_writes_a_job_that_runs(self):
        result = self.howmany("--min-efficiency", 0.01, "--time-budget", 60, "--emit", "slurm", "--", PYTHON, SCRIPT)
        self.check_group(result)
        self.assertIn("\n#SBATCH --nodes=2\n", result.out)
        script = self.folder / "job.sh"
        script.write_text(result.out.replace(SCRIPT.name, f"{SCRIPT.name} --epochs 2"))
        printed = self.folder / "job.out"
        done = self.hosts.run("sbatch", "--wait", f"--output={printed}", script)
        self.assertEqual(done.returncode, 0, f"{done.stderr}\n{printed.read_text()}")
        ranks = re.findall(r"rank (\d) of 2 on (\w+)", printed.read_text())
        self.assertEqual(sorted(ranks), [(str(i), name) for i, name in enumerate(self.hosts.names)])

    def test_the_users_own_srun(self):
        result = self.howmany(
            "--min-efficiency", 0.01, "--time-budget", 60, "--emit", "slurm", "--", "srun", "-N", "{nodes}", "-n",
            "{n}", "env", "MASTER_ADDR={head}", "MASTER_PORT={port}", PYTHON, SCRIPT, "--rank-of-srun")
        self.check_group(result)
        self.assertIn('srun -N 2 -n 2 env MASTER_ADDR="$head" MASTER_PORT=29500 ', result.out)

    def test_a_host_with_other_folders_and_an_address_that_does_not_route(self):
        """TMPDIR of the second host is another folder, so the record comes by the store."""
        name = self.hosts.names[1]
        file = self.hosts.hosts_file(name)
        before = file.read_text()
        self.addCleanup(file.write_text, before)
        file.write_text(f"127.0.1.1 {name}\n{before}")
        self.mount_on(name, "-t", "tmpfs", "none", target=self.tmp)
        request = self.check_group(self.howmany("--", PYTHON, SCRIPT))
        self.assertEqual(request["nodes"]["environment"], ["GLOO_SOCKET_IFNAME=eth0"])

    def test_ranks_that_train_alone(self):
        result = self.howmany("--", PYTHON, SCRIPT, "--alone")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.rows(), {})
        self.assertEqual(self.summary()["answer"]["gpus"]["recommended"], 1)

    def test_a_script_that_a_host_does_not_have(self):
        hidden = self.folder / "hidden"
        hidden.mkdir()
        script = hidden / "train.py"
        script.write_text(SCRIPT.read_text())
        self.mount_on(self.hosts.names[1], "-t", "tmpfs", "none", target=hidden)
        result = self.howmany("--", PYTHON, script)
        self.assertEqual(result.code, 3, result)
        self.assertIn(f"can't open file '{script}'", result.err)

    def test_another_torch_on_a_host_is_named(self):
        path = pathlib.Path(subprocess.run([PYTHON, "-c", VERSION], text=True, capture_output=True).stdout.strip())
        other = self.folder / "version.py"
        other.write_text(re.sub(r"^__version__ = .*$", "__version__ = '1.0.other'", path.read_text(), flags=re.M))
        self.mount_on(self.hosts.names[1], "--bind", other, target=path)
        self.job = {**self.job, "PYTHONDONTWRITEBYTECODE": "1"}
        result = self.howmany("--", PYTHON, SCRIPT)
        self.assertEqual(result.code, 2, result)
        self.assertIn(f"1.0.other on {self.hosts.names[1]}", result.err)

    def test_a_port_that_is_in_use_is_the_reason(self):
        holder = self.popen(*self.hosts.command_on(self.hosts.names[0], sys.executable, "-c", LISTENER, PORT),
                            stdout=subprocess.PIPE)
        holder.stdout.readline()
        agent = (f'exec {PYTHON} -m torch.distributed.run --nnodes {{nodes}} --nproc-per-node {{per_node}} --node-rank '
                 f'"$SLURM_NODEID" --master-addr {{head}} --master-port {PORT} {SCRIPT}')
        result = self.howmany("--", "srun", "-N", "{nodes}", "-n", "{nodes}", "sh", "-c", agent)
        self.assertNotEqual(result.code, 0, result)
        self.assertIn("EADDRINUSE", result.err)


programs.main()
