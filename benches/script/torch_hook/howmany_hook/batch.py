# SPDX-License-Identifier: Apache-2.0
"""The number of samples in a batch: the first dimension of its largest tensor."""

import collections.abc
import math

from torch import Tensor


def tensors_in(batch, depth=4):
    """Returns the tensors of nested lists, tuples and mappings."""
    if isinstance(batch, Tensor):
        return [batch]
    if depth == 0:
        return []
    if isinstance(batch, (list, tuple)):
        values = batch
    elif isinstance(batch, collections.abc.Mapping):
        values = batch.values()
    else:
        return []
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        else:
            found += tensors_in(value, depth - 1)
    return found


def samples_in(batch):
    """Returns 0 if the batch holds no tensor with a dimension."""
    most, samples = -1, 0
    for tensor in tensors_in(batch):
        shape = tensor.shape
        elements = math.prod(shape)  # cheaper than shape.numel()
        if shape and elements > most:
            most, samples = elements, shape[0]
    return samples
