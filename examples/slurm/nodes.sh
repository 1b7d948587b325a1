#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How many nodes pay for a training script? Measures 1, 2 and 4 of the nodes of this job, and writes the job of that size:
#   sbatch --gpus-per-node=4 examples/slurm/nodes.sh python train.py --epochs 9
# Without words it measures a model of howmany. On two nodes:
#   NODES=1,2 sbatch --nodes=2 examples/slurm/nodes.sh
#SBATCH --job-name=howmany-nodes
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --time=0-00:20:00
set -euo pipefail  # NODES: counts to measure. BUDGET: seconds (600)

out=howmany-out/$SLURM_JOB_ID
command=(--model mlp --mode ddp --rounds 1)
if [ $# -gt 0 ]; then command=(-- "$@"); fi
howmany gpus --nodes "${NODES:-1,2,4}" --time-budget "${BUDGET:-600}" --quiet --out "$out" "${command[@]}"

howmany report "$out" --emit slurm >"$out/job.sh"
