#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How many loader workers feed one device with the cores of this job? DATA is a folder of images:
#   sbatch --cpus-per-task=16 --export=ALL,DATA=/data/train,RATE=1.8k examples/slurm/workers.sh
# Without DATA it decodes synthetic JPEGs. RATE: samples per second that training takes.
#SBATCH --job-name=howmany-workers
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --time=0-00:10:00
set -euo pipefail  # BUDGET: seconds to measure (60)

srun --ntasks=1 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --cpu-bind=cores \
  howmany workers ${DATA:+--data "$DATA"} ${RATE:+--samples-per-second "$RATE"} --time-budget "${BUDGET:-60}" --quiet \
  --out "howmany-out/$SLURM_JOB_ID"
