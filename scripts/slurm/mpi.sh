#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The run of train.sh over MPI, if Slurm has the pmix plugin: sbatch scripts/slurm/mpi.sh
# Without it: salloc, then mpirun --bind-to none howmany train ... --backend mpi
#SBATCH --job-name=howmany-mpi
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --time=0-00:10:00

srun --mpi=pmix --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --cpu-bind=cores --kill-on-bad-exit=1 \
  howmany train --model mlp:sizes=64-64-10 --mode ddp --backend mpi --cores-per-device "${SLURM_CPUS_PER_TASK:-1}" --epochs 2
