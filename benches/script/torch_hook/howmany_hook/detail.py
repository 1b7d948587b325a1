# SPDX-License-Identifier: Apache-2.0
"""How the steps after the timed ones run, to show where the time of a step goes.

synced   as the timed ones. A communication hook of DistributedDataParallel notes when each bucket is ready and when it is
         exchanged
noop     likewise, with a collective that does nothing: the work of DistributedDataParallel itself
alone    DistributedDataParallel only passes its calls on: each rank trains by itself
narrow   as alone, with as many threads as the rank has cores. Only if it has more threads than cores
bf16     likewise as synced, with gradients as bfloat16 (--try)
settle   as synced, not counted: the ranks meet again

The modes take turns, in an order that is random, so that nothing recurs with it, and the same on all ranks. The parameters of
the ranks differ from then on. The command ends after these steps.

Left out. Without DistributedDataParallel all steps are synced, or narrow. Likewise if torch.compile has seen frames, or within
    join(). If the script has a communication hook of its own, no bucket is recorded, and none is noop or bf16. If it scales
    its loss, none is noop or alone: a rank may then skip a step.
Cost. The hook divides the gradients in a pass of its own, which is timed and left out. NCCL divides them itself.
"""

import dataclasses
import functools
import os
import random
import sys

import torch

from howmany_hook import objects

SEED = 7
SYNCED = 1, 2  # the fewest and most steps of a turn


@dataclasses.dataclass
class Bucket:
    bytes: int
    at: object  # marks
    ended: object = None


class Detail:
    def __init__(self, phases, tries):
        """Call on all ranks after the same step: they agree on the modes."""
        self._phases = phases
        self.modules = objects.ddp_modules()
        self._threads, self._cores = torch.get_num_threads(), len(os.sched_getaffinity(0))
        self.own_hook = any(module._comm_hooks for module in self.modules)
        plain = bool(self.modules) and not compiled() and not any(map(_is_special, self.modules))
        wide = self._threads > self._cores and not compiled()
        records, alone, narrow = self._agreed(plain and not self.own_hook, plain and not _scales(), wide)
        if records:
            for module in self.modules:
                module.register_comm_hook(module.process_group, self._hook)
        if alone:
            self._watch_forward()
        self._narrow = ["narrow"] if narrow else []
        self._tried = ["bf16"] if records and "bf16" in tries else []
        self._bf16 = _bf16_hook() if self._tried else None
        self._unsynced = [*(["noop"] if records and alone else []), *(["alone", *self._narrow] if alone else [])]
        self._mode, self._coming = "", []
        self._random = random.Random(SEED)

    def _agreed(self, records, alone, narrow):
        """True, True: on all ranks. The last one: on any."""
        if self.modules:
            module = self.modules[0]
            flags = torch.tensor([records, alone, not narrow], dtype=torch.int32, device=module.device)
            torch.distributed.all_reduce(flags, op=torch.distributed.ReduceOp.MIN, group=module.process_group)
            records, alone, narrow = flags[0] > 0, flags[1] > 0, flags[2] == 0
        return bool(records), bool(alone), bool(narrow)

    def _turn(self):
        """Some steps in which the ranks meet, and one of each other mode, in a random order."""
        if not self._unsynced:
            turn = ["synced", "synced", *self._tried, *self._narrow]
            return self._random.sample(turn, k=len(turn))
        met = ["synced"] * self._random.randint(*SYNCED) + self._tried
        self._random.shuffle(met)
        return ["settle", *met, *self._random.sample(self._unsynced, k=len(self._unsynced))]

    def next(self):
        """Call at the end of each step. Returns the mode of the next one."""
        self._coming = self._coming or self._turn()
        self._mode = self._coming.pop(0)
        if self._narrow:
            fewer = min(self._cores, self._threads)
            torch.set_num_threads(fewer if self._mode == "narrow" else self._threads)
        return self._mode

    def figures(self):
        """For the record; null members without DistributedDataParallel."""
        names = ("bucket_view", "bucket_cap")
        line = dict.fromkeys(names) | {"own_hook": self.own_hook, "cores": self._cores}
        if not self.modules:
            return line
        module = self.modules[0]
        data = module._get_ddp_logging_data()
        return line | {
            "bucket_view": bool(module.gradient_as_bucket_view),
            "bucket_cap": int(data.get("bucket_cap_bytes") or 0),
        }

    def _hook(self, group, bucket):
        tensor = bucket.buffer()
        if self._mode == "noop":
            self._saw(tensor)
            return _completed(tensor)
        if self._mode == "bf16":
            return self._bf16(group, bucket)
        operation = torch.distributed.ReduceOp.SUM
        if torch.distributed.get_backend(group) == "nccl":
            operation = torch.distributed.ReduceOp.AVG
        else:
            with self._phases.own_time():
                tensor.div_(group.size())
        one = self._saw(tensor)
        future = torch.distributed.all_reduce(tensor, op=operation, group=group, async_op=True).get_future()

        def exchanged(done):
            one.ended = self._phases.clock.mark()
            return done.value()[0]

        return future.then(exchanged)

    def _saw(self, tensor):
        one = Bucket(tensor.numel() * tensor.element_size(), self._phases.clock.mark())
        self._phases.now.buckets.append(one)
        return one

    def _watch_forward(self):
        ddp = torch.nn.parallel.DistributedDataParallel
        forward = ddp.forward

        @functools.wraps(forward)
        def passed_on(module, *args, **kwargs):
            if self._mode not in ("alone", "narrow"):
                return forward(module, *args, **kwargs)
            if module.device_ids:
                to = torch.device(module.device_type, module.device_ids[0])
                args, kwargs = torch.distributed.utils._to_kwargs(args, kwargs, to, module.use_side_stream_for_tensor_copies)
                args, kwargs = args[0], kwargs[0]
            return module.module(*args, **kwargs)

        ddp.forward = passed_on


def _bf16_hook():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    return default_hooks.bf16_compress_hook


def _completed(tensor):
    future = torch.futures.Future(devices=[tensor.device] if tensor.is_cuda else [])
    future.set_result(tensor)
    return future


def _is_special(module):
    return module._join_config.enable or getattr(module, "mixed_precision", None) is not None


def _scales():
    return bool(objects.objects_of((torch.amp.GradScaler,)))


def compiled():
    frames = getattr(sys.modules.get("torch._dynamo.convert_frame"), "FRAME_COUNTER", 0)
    return frames > 0
