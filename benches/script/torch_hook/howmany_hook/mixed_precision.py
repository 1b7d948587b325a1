# SPDX-License-Identifier: Apache-2.0
"""Autocast and fused kernels of a pretended GPU (pretend.py), of which C++ knows only `meta` tensors.

The lists are those of torch/csrc/autocast (Autocast Op Reference of PyTorch's documents): what is computed in the lower
precision, and what in float32. Attention takes the kernel that PyTorch takes on that GPU: flash attention from
capability 8.0 on for two bytes per element and no mask, else the memory-efficient one.
"""

import functools

import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_map

LOWER = {
    F: ("linear", "bilinear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
    torch: (
        "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "matmul", "mm", "bmm",
        "addmm", "addmv", "addbmm", "baddbmm", "mv", "einsum", "prelu",
    ),
    torch.Tensor: ("matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "addbmm", "baddbmm", "mv"),
    torch._C._nn: ("linear",),
}  # fmt: skip
FULL = {
    F: (
        "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "kl_div", "huber_loss", "cosine_similarity",
        "cosine_embedding_loss", "binary_cross_entropy_with_logits", "softplus", "triplet_margin_loss", "poisson_nll_loss",
        "multi_margin_loss", "margin_ranking_loss", "hinge_embedding_loss", "multilabel_margin_loss", "pdist", "ctc_loss",
    ),
    torch: (
        "layer_norm", "group_norm", "softmax", "log_softmax", "cumsum", "cumprod", "exp", "expm1", "log", "log10", "log2",
        "log1p", "pow", "prod", "sum", "norm", "rsqrt", "reciprocal", "cosh", "sinh", "tan", "acos", "asin", "erfinv",
        "dist", "cdist", "renorm", "logsumexp",
    ),
    torch.Tensor: (
        "softmax", "log_softmax", "cumsum", "cumprod", "exp", "expm1", "log", "log10", "log2", "log1p", "pow", "__pow__",
        "__rpow__", "prod", "sum", "norm", "rsqrt", "reciprocal", "logsumexp",
    ),
}  # fmt: skip
RECURRENT = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}  # the modes of cuDNN
FLASH_SIDE = 256  # the largest head


def install(mode, capability):
    lists = {(owner, name): "lower" for owner, names in LOWER.items() for name in names}
    lists |= {(owner, name): "full" for owner, names in FULL.items() for name in names}
    for (owner, name), which in lists.items():
        if hasattr(owner, name):
            setattr(owner, name, _casting(getattr(owner, name), which == "lower", mode))
    attention = _attention(F.scaled_dot_product_attention, mode, capability)
    F.scaled_dot_product_attention = torch._C._nn.scaled_dot_product_attention = attention
    for name, kind in RECURRENT.items():
        setattr(torch._VF, name, _recurrent(getattr(torch._VF, name), kind, mode))
    F.dropout, torch.dropout = _dropout(F.dropout, mode), _dropout(torch.dropout, mode)


def _lower():
    """The type of autocast; None if it is off."""
    return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None


def _casting(function, lower, mode):
    @functools.wraps(function)
    def casting(*args, **kwargs):
        dtype = _lower()
        if dtype is None:
            return function(*args, **kwargs)
        wanted = dtype if lower else torch.float32

        def cast(value):
            if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not mode.on_gpu(value):
                return value
            return value if value.dtype in (wanted, torch.float64) else value.to(wanted)

        return function(*tree_map(cast, args), **tree_map(cast, kwargs))

    return casting


def _dropout(function, mode):
    @functools.wraps(function)
    def dropout(input, p=0.5, training=True, inplace=False):
        if not training or inplace or p in (0, 1) or not mode.on_gpu(input):
            return function(input, p, training, inplace) if function is not _torch_dropout else function(input, p, training)
        return torch.native_dropout(input, p, True)[0]

    return dropout


_torch_dropout = torch.dropout


def _attention(function, mode, capability):
    @functools.wraps(function)
    def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if not mode.on_gpu(query) or mode.real:
            rest = {"scale": scale} | ({"enable_gqa": True} if enable_gqa else {})
            return function(query, key, value, attn_mask, dropout_p, is_causal, **rest)
        dtype = _lower()
        if dtype is not None:
            query, key, value = (t.to(dtype) if t.is_floating_point() else t for t in (query, key, value))
        if enable_gqa and key.shape[-3] != query.shape[-3]:
            times = query.shape[-3] // key.shape[-3]
            key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
        leading = query.shape[:-3]
        if query.dim() != 4:
            query, key, value = (t.reshape(-1, *t.shape[-3:]) if t.dim() > 4 else t.view(1, 1, *t.shape[-2:])
                                 if t.dim() == 2 else t.unsqueeze(0) for t in (query, key, value))  # fmt: skip
        flash = capability >= (8, 0) and attn_mask is None and query.element_size() == 2
        if flash and query.shape[-1] <= FLASH_SIDE and query.shape[-1] == value.shape[-1]:
            result = torch.ops.aten._scaled_dot_product_flash_attention(
                query, key, value, dropout_p, is_causal, False, scale=scale)[0]
        else:
            result = torch.ops.aten._scaled_dot_product_efficient_attention(
                query, key, value, _bias(attn_mask, query, key), True, dropout_p, is_causal, scale=scale)[0]
        if len(leading) == 1:
            return result
        return result.reshape(*leading, *result.shape[-3:]) if leading else result.squeeze(0)

    return attention


def _bias(mask, query, key):
    if mask is None:
        return None
    if mask.dtype is torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, float("-inf"))
    return mask.to(query.dtype).expand(*query.shape[:-1], key.shape[-2])


def _buffer(weights):
    """In which cuDNN has all weights."""
    return weights[0].new_empty(sum(one.numel() for one in weights))


def _recurrent(function, kind, mode):
    """cuDNN computes all layers and time steps in one call. Packed sequences have their sizes before the state."""

    @functools.wraps(function)
    def recurrent(input, *args):
        if mode.real or not mode.on_gpu(input):
            return function(input, *args)
        packed = isinstance(args[0], torch.Tensor) and args[0].dtype is torch.int64 and args[0].dim() == 1
        sizes, args = (args[0].tolist(), args[1:]) if packed else ([], args)
        state, weights, has_biases, layers, dropout, training, bidirectional = args[:7]
        batch_first = False if packed else args[7]
        hidden, cell = state if kind == RECURRENT["lstm"] else (state, None)
        dtype = _lower()
        if dtype is not None:
            input, hidden, weights = input.to(dtype), hidden.to(dtype), [one.to(dtype) for one in weights]
            cell = None if cell is None else cell.to(dtype)
        stride = len(weights) // (layers * (2 if bidirectional else 1))
        width = (hidden if cell is None else cell).shape[-1]
        projected = hidden.shape[-1] if hidden.shape[-1] != width else 0
        output, hidden, cell, *_ = torch.ops.aten._cudnn_rnn(
            input, weights, stride, _buffer(weights), hidden, cell, kind, width, projected, layers, batch_first, dropout, training,
            bidirectional, sizes, None)  # fmt: skip
        return (output, hidden, cell) if kind == RECURRENT["lstm"] else (output, hidden)

    return recurrent
