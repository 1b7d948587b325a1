#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A study on several nodes from the login node, where nothing is measured: submits a job for each number of nodes.
#   bash examples/slurm/submit.sh 'sbatch -A proj -p gpu --gpus-per-node=4 -t 15' 1,2,4 python train.py
# Then, as often as you like:
#   howmany gpus --resume howmany-out/study
set -euo pipefail  # OUT: folder of the study (howmany-out/study)

submit=$1 nodes=$2
shift 2
howmany gpus --submit "$submit" --nodes "$nodes" --dry-run -- "$@" | grep '^# '  # the most that it costs
howmany gpus --submit "$submit" --nodes "$nodes" --out "${OUT:-howmany-out/study}" -- "$@"
