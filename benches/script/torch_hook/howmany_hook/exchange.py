# SPDX-License-Identifier: Apache-2.0
"""Shows whether the ranks of a group exchange gradients, without DistributedDataParallel, FSDP or DTensor.

Collectives. The sequence number of a group counts its calls. A script may average gradients after the backward pass, a
    sharded optimizer exchanges within its step, and local SGD averages parameters every few steps.
Sums. The sum of a gradient is the same in all ranks if it was exchanged, in whatever way. Likewise the sum of a parameter
    after it was averaged. Both are noted right before an optimizer steps, in a few steps: the first ones, and those
    with collectives since the optimizer stepped last. benches/script/ranks.h compares the ranks.
"""

import torch

EARLY = (2, 3, 4)  # steps
MOST_NOTED = 12


class Exchange:
    def __init__(self):
        self._groups, self._backends = 0, []
        self._steps = self._within = self._elsewhere = 0
        self._last = self._passed = self._count()  # at the end of the last step; of the last backward pass
        self._sums = {}  # by step

    def passed(self):
        """Call after each backward pass."""
        self._passed = self._count()

    def stepping(self, step, parameters):
        """Call before an optimizer steps."""
        noted = step in EARLY or self._passed != self._last
        if noted and step not in self._sums and len(self._sums) < MOST_NOTED:
            self._sums[step] = _sum([p.grad for p in parameters]), _sum(parameters)

    def ended(self):
        """Call at the end of each step."""
        now = self._count()
        self._steps += 1
        self._within += now != self._passed
        self._elsewhere += self._passed != self._last
        self._last = self._passed = now

    def line(self):
        """Of the record. None: the backend of a group does not count its collectives."""
        if self._last is None:
            return None
        sums = [
            {"step": step, "gradients": _text(gradients), "parameters": _text(parameters)}
            for step, (gradients, parameters) in self._sums.items()
        ]
        return {"steps": self._steps, "within": self._within, "elsewhere": self._elsewhere, "sums": sums}

    def _count(self):
        groups = torch.distributed.distributed_c10d._world.pg_map
        try:
            if len(groups) != self._groups:
                self._groups, self._backends = len(groups), _backends(groups)
            return sum(backend._get_sequence_number_for_group() for backend in self._backends)
        except (RuntimeError, AttributeError):
            return None


def _backends(groups):
    return {group._get_backend(device) for group in groups for device in group._device_types}


def _sum(tensors):
    """Of the first and the last one that exist. A tensor: on a GPU nothing waits for it."""
    some = [one.detach() for one in tensors if one is not None]
    some = [one.coalesce().values() if one.is_sparse else one for one in some[:1] + some[-1:]]
    some = [torch.view_as_real(one) if one.is_complex() else one for one in some]
    return [one.sum(dtype=torch.float64) for one in some]


def _text(sums):
    return " ".join(f"{float(one):.12g}" for one in sums)
