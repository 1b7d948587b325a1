#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Finds how many devices of one node to use: sbatch scripts/slurm/gpus.sh
# howmany starts its own ranks, so run it as one task with the whole node.
# Never use srun -n 2 howmany gpus.
# With GPUs, which then are the devices: sbatch --gpus=4 --cpus-per-task=32 scripts/slurm/gpus.sh
# Afterwards: howmany report howmany-out/$SLURM_JOB_ID --emit slurm > job.sh
#SBATCH --job-name=howmany-gpus
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --time=0-00:10:00

srun --ntasks=1 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --cpu-bind=cores \
  howmany gpus --model simple_net --mode ddp,data_parallel --rounds 1 --time-budget 20 --quiet \
  --out "howmany-out/$SLURM_JOB_ID"
