# SPDX-License-Identifier: Apache-2.0
"""The number of samples in a batch: the first dimension of its largest tensor."""

import collections.abc

import torch


def tensors_in(batch, depth=4):
    """Yields the tensors of nested lists, tuples and mappings."""
    if isinstance(batch, torch.Tensor):
        yield batch
    elif depth > 0 and isinstance(batch, collections.abc.Mapping):
        for value in batch.values():
            yield from tensors_in(value, depth - 1)
    elif depth > 0 and isinstance(batch, (list, tuple)):
        for value in batch:
            yield from tensors_in(value, depth - 1)


def samples_in(batch):
    """Returns 0 if the batch holds no tensor with a dimension."""
    largest = max(
        (tensor for tensor in tensors_in(batch) if tensor.dim() > 0), key=torch.Tensor.numel, default=None
    )
    return 0 if largest is None else largest.shape[0]
