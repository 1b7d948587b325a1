#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One training run over the tasks of the job: sbatch scripts/slurm/train.sh
# Each task is a rank with its own cores. The ranks connect on the first host of the step, on a port
# derived from the job and step number. Set MASTER_ADDR and MASTER_PORT to change that, and
# HOWMANY_IFACE to choose the network.
#SBATCH --job-name=howmany-train
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --time=0-00:10:00

srun --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --cpu-bind=cores --kill-on-bad-exit=1 \
  howmany train --model mlp:sizes=64-64-10 --mode ddp --backend auto --cores-per-device "${SLURM_CPUS_PER_TASK:-1}" --epochs 2
