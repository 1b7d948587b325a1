#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Which communication backend, between the tasks of this job: two nodes with one task each.
#   sbatch --nodes=2 --ntasks-per-node=1 examples/slurm/backend.sh
# Only one node here: sbatch examples/slurm/backend.sh
#SBATCH --job-name=howmany-backend
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --time=0-00:10:00
set -euo pipefail  # BUDGET: seconds to measure (60)

srun --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --cpu-bind=cores --kill-on-bad-exit=1 \
  howmany backend --backend gloo --ops all_reduce,broadcast --max-bytes 4M --time-budget "${BUDGET:-60}" --quiet \
  --out "howmany-out/$SLURM_JOB_ID"
