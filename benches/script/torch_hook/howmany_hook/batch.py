# SPDX-License-Identifier: Apache-2.0
"""The number of samples in a batch: that of its largest part.

A tensor has its first dimension, a batch of graphs its num_graphs, and packed sequences their number. A list has its
length if its elements are samples: mappings, images or tensors of different first dimensions, or as many as in the list
beside them.
"""

import collections.abc
import dataclasses
import math

from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

DEPTH = 4
IMAGE_CHANNELS, IMAGE_SIDE = (1, 3, 4), 8  # a tensor of three dimensions, the least side


def parts_of(batch):
    """Returns the values of a list, tuple, mapping, dataclass or object that holds tensors."""
    if isinstance(batch, (list, tuple)):
        return batch
    if isinstance(batch, collections.abc.Mapping):
        return list(batch.values())
    if dataclasses.is_dataclass(batch):
        return [getattr(batch, field.name) for field in dataclasses.fields(batch)]
    values = list(getattr(batch, "__dict__", {}).values())
    return values if any(isinstance(value, Tensor) for value in values) else []


def tensors_in(batch, depth=DEPTH):
    """Returns the tensors of nested parts."""
    if isinstance(batch, Tensor):
        return [batch]
    if depth == 0:
        return []
    return [one for part in parts_of(batch) for one in tensors_in(part, depth - 1)]


def samples_in(batch):
    """Returns 0 if the batch holds no tensor with a dimension."""
    return _largest(batch, (), DEPTH)[1]


def samples_of_call(args, kwargs):
    """Returns the samples of a module's arguments; 0 if unknown. The batch is second if sequences of numbers or vectors,
    such as an RNN's input and its state, share only their second dimension."""
    parts = [*args, *(kwargs or {}).values()]
    parts = [part for part in parts if not _is_mask(part)] or parts
    groups = [part if isinstance(part, tuple) else [part] for part in parts]
    shapes = [one.shape for group in groups for one in group if isinstance(one, Tensor) and _is_sequence(one)]
    first, second = ({shape[i] for shape in shapes} for i in range(2))
    if len(first) > 1 and len(second) == 1 and type(shapes[0][1]) is int:
        return second.pop()
    return max((_largest(part, parts, DEPTH) for part in parts), default=(-1, 0), key=lambda found: found[0])[1]


def _is_mask(part):
    """True for one of attention: position by position."""
    return isinstance(part, Tensor) and part.dim() == 2 and part.shape[0] == part.shape[1]


def _is_sequence(tensor):
    return tensor.dim() == 3 or tensor.dim() == 2 and not tensor.is_floating_point()


def _largest(batch, siblings, depth):
    """Returns the elements of the largest part, and its samples."""
    if isinstance(batch, Tensor):
        shape = batch.shape
        return (math.prod(shape), shape[0]) if shape and type(shape[0]) is int else (-1, 0)
    if depth == 0 or isinstance(batch, (str, bytes)):
        return -1, 0
    graphs = getattr(batch, "num_graphs", None)
    if isinstance(batch, PackedSequence) or type(graphs) is int:
        count = graphs if type(graphs) is int else int(batch.batch_sizes[0])
        return sum(tensor.numel() for tensor in tensors_in(batch)), count
    parts = parts_of(batch)
    if isinstance(batch, (list, tuple)) and len(parts) > 0 and _are_samples(parts, siblings):
        elements = sum(tensor.numel() for tensor in tensors_in(batch, depth))
        return (elements, len(parts)) if elements else (-1, 0)
    return max((_largest(part, parts, depth - 1) for part in parts), default=(-1, 0), key=lambda found: found[0])


def _are_samples(parts, siblings):
    if all(isinstance(part, collections.abc.Mapping) for part in parts):
        return True
    if not all(isinstance(part, Tensor) and part.dim() > 0 for part in parts):
        return False
    if any(isinstance(one, (list, tuple)) and one is not parts and len(one) == len(parts) for one in siblings):
        return True
    shapes = [part.shape for part in parts]
    if len({len(shape) for shape in shapes}) > 1 or len(shapes[0]) < 2:
        return False
    if len({shape[0] for shape in shapes}) > 1:
        return True
    return all(len(s) == 3 and s[0] in IMAGE_CHANNELS and min(s[1:]) >= IMAGE_SIDE for s in shapes)
