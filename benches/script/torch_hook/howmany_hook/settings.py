# SPDX-License-Identifier: Apache-2.0
"""What script_bench asks of the hook, from the environment of the process.

HOWMANY_SCRIPT_OUT        folder of the files, on the host of rank 0; absent: the hook does nothing
HOWMANY_SCRIPT_SECONDS    time for the timed steps
HOWMANY_SCRIPT_MAX_STEPS  largest number of timed steps
HOWMANY_SCRIPT_DETAIL     the most steps after the timed ones, see detail.py
HOWMANY_SCRIPT_TRY        what these steps also try, such as "bf16"
HOWMANY_SCRIPT_SAMPLES    samples per step and rank, if the batches do not show them
HOWMANY_SCRIPT_TRY_DDP    1: put DistributedDataParallel around the model, see wrap.py
HOWMANY_SCRIPT_WORKERS    numbers of loader workers that take turns, such as "0,1,2"; see turns.py. With it:
HOWMANY_SCRIPT_ROUNDS     rounds of turns
HOWMANY_SCRIPT_MOST       largest number of workers of all ranks on this machine
HOWMANY_SCRIPT_PREFETCH   batches that each worker makes ahead; 0: as the script says
HOWMANY_SCRIPT_LOADER     which DataLoader, 1 is the one used first; 0: the one that feeds training
HOWMANY_SCRIPT_MEMORY     1: count the memory of a step, see memory.py
HOWMANY_SCRIPT_COUNT      a GPU that is not here: count the operations of a step on it, see pretend.py. JSON:
                          {"name": "NVIDIA A100", "memory": bytes, "capability": [8, 0], "devices": 4, "real": false}
HOWMANY_SCRIPT_REHEARSE   file with a cost table: the group has more ranks than there are, see rehearsal.py
HOWMANY_SCRIPT_CORES      cores of each local rank, such as "0,1;2,3"; absent: not bound

Several hosts. If fewer ranks are on this host than in all, they exchange through the store of their group (store.py).
If srun does not say how many are here, each counts as alone, which does no harm.
"""

import dataclasses
import json
import os

RANK_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
WORLD_VARIABLES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
LOCAL_WORLD_VARIABLES = ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
LOCAL_RANK_VARIABLES = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")


def first_number(names, otherwise=0):
    for name in names:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return otherwise


def launched():
    """True if a launcher has set the rank of this process."""
    return first_number(LOCAL_RANK_VARIABLES, -1) >= 0


def core_lists(text):
    return [[int(core) for core in one.split(",")] for one in text.split(";") if one]


@dataclasses.dataclass
class Settings:
    out: str
    seconds: float
    max_steps: int
    detail: int
    tries: list
    samples: int
    cores: list
    try_ddp: bool
    rank: int
    local_rank: int
    world: int
    local_world: int
    spans_hosts: bool  # the ranks are on several hosts, or may be
    workers: list
    rounds: int
    most_workers: int
    prefetch: int
    loader: int
    rehearse: str
    memory: bool
    count: dict  # or None

    @staticmethod
    def from_environment():
        get = os.environ.get
        world, local_world = first_number(WORLD_VARIABLES, 1), first_number(LOCAL_WORLD_VARIABLES, 1)
        return Settings(
            out=os.environ["HOWMANY_SCRIPT_OUT"],
            seconds=float(get("HOWMANY_SCRIPT_SECONDS", "3")),
            max_steps=int(get("HOWMANY_SCRIPT_MAX_STEPS", "10000")),
            detail=int(get("HOWMANY_SCRIPT_DETAIL", "0")),
            tries=[one for one in get("HOWMANY_SCRIPT_TRY", "").split(",") if one],
            samples=int(get("HOWMANY_SCRIPT_SAMPLES", "0")),
            cores=core_lists(get("HOWMANY_SCRIPT_CORES", "")),
            try_ddp=get("HOWMANY_SCRIPT_TRY_DDP") == "1",
            rank=first_number(RANK_VARIABLES),
            local_rank=first_number(LOCAL_RANK_VARIABLES),
            world=world,
            local_world=local_world,
            spans_hosts=local_world < world,
            workers=[int(one) for one in get("HOWMANY_SCRIPT_WORKERS", "").split(",") if one],
            rounds=int(get("HOWMANY_SCRIPT_ROUNDS", "2")),
            most_workers=int(get("HOWMANY_SCRIPT_MOST", "1024")),
            prefetch=int(get("HOWMANY_SCRIPT_PREFETCH", "0")),
            loader=int(get("HOWMANY_SCRIPT_LOADER", "0")),
            rehearse=get("HOWMANY_SCRIPT_REHEARSE", ""),
            memory=get("HOWMANY_SCRIPT_MEMORY") == "1",
            count=json.loads(get("HOWMANY_SCRIPT_COUNT", "null")),
        )
