#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measures how many devices of this node pay, then submits a training job of that size:
#   sbatch examples/slurm/ask-and-train.sh
# With GPUs: sbatch --gpus=4 --cpus-per-task=32 examples/slurm/ask-and-train.sh
# NO_SUBMIT=1 prints the second job's script instead of submitting it.
#SBATCH --job-name=howmany-ask
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --time=0-00:15:00
set -euo pipefail  # BUDGET: seconds to measure (60)

out=howmany-out/$SLURM_JOB_ID
srun --ntasks=1 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --cpu-bind=cores \
  howmany gpus --model simple_net --mode ddp --rounds 1 --time-budget "${BUDGET:-60}" --samples 100k --quiet --out "$out"

howmany report "$out" --samples 100k --emit slurm >"$out/job.sh"
if [ -n "${NO_SUBMIT:-}" ]; then cat "$out/job.sh"; else sbatch "$out/job.sh"; fi
