# SPDX-License-Identifier: Apache-2.0
"""What one ATen call costs a GPU: its kind of work, FLOP, and bytes read and written.

FLOP are those of torch.utils.flop_counter, with three differences: convolutions with groups count only their own
products in the backward pass, causal attention counts half, and fused recurrent layers have a formula.
Bytes count each distinct tensor once as an input and once as an output. An expanded tensor counts its real elements.
Batch and group norm read their inputs twice, for the statistics and for the result.
Operations that gather or scatter count only the elements that they touch.
The name of a convolution on tensor cores ends with _nchw if neither its input nor its weight is channels-last.
"""

import functools
import math
import typing

import torch

PRODUCT, CONVOLUTION, ATTENTION, MEMORY, UNKNOWN = "product", "convolution", "attention", "memory", "unknown"

OTHER_NAMESPACES = {"c10d", "_c10d_functional", "_dtensor", "profiler", "prim", "debugprims", "symm_mem"}
NO_KERNEL = {
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "_unsafe_view",
    "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk", "_reshape_alias", "lift", "resize_", "resize_as_", "set_",
    "_local_scalar_dense", "item", "is_same_size", "is_pinned", "_pin_memory", "pin_memory", "record_stream",
    "sym_size", "sym_numel", "sym_stride", "sym_storage_offset", "size", "stride", "dim", "numel", "is_contiguous",
    "is_nonzero", "_has_compatible_shallow_copy_type", "_version", "_fused_sdp_choice", "_assert_tensor_metadata",
    "_nested_tensor_size", "retain_grad", "requires_grad_", "detach_", "_make_dual", "_unpack_dual"}  # fmt: skip
OVERWRITES = {"zero_", "fill_", "copy_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "cauchy_",
              "log_normal_", "geometric_", "_foreach_zero_", "_foreach_copy_", "arange", "eye_"}  # fmt: skip
CREATES = {"zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like", "new_zeros", "new_ones",
           "new_full", "max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward"}  # fmt: skip
GATHERS = {"embedding", "index_select", "gather", "index", "_unsafe_index", "take", "take_along_dim", "embedding_bag",
           "_embedding_bag", "nll_loss_forward", "nll_loss2d_forward", "nll_loss_backward",
           "nll_loss2d_backward"}  # fmt: skip
SCATTERS = {"index_put_", "_index_put_impl_", "_unsafe_index_put", "scatter_", "scatter_add_", "scatter_reduce_",
            "index_add_", "index_copy_", "put_", "index_fill_"}  # fmt: skip
TWO_PASSES = ("batch_norm", "group_norm")  # parts of names: statistics of all rows first, then each row again
NO_FORMULA = ("linalg_", "_linalg_", "fft_", "_fft_", "_ctc_loss", "_cdist_", "_pdist_", "grid_sampler_", "cholesky",
              "lu_", "triangular_solve", "miopen_rnn", "mkldnn_rnn", "segment_reduce", "_sparse_")  # fmt: skip
NORMS = {"linalg_vector_norm", "linalg_norm", "linalg_matrix_norm"}
CONVOLUTIONS = {"convolution", "_convolution", "convolution_overrideable", "cudnn_convolution", "_slow_conv2d_forward",
                "cudnn_convolution_transpose", "miopen_convolution", "mkldnn_convolution"}  # fmt: skip
TENSOR_CORES = {"f16", "bf16", "tf32"}
DTYPES = {
    torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float64: "f64", torch.int64: "i64",
    torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool",
    torch.complex64: "c64", torch.complex128: "c128",
}  # fmt: skip


class Operation(typing.NamedTuple):
    op: str
    work: str
    dtype: str  # "tf32" if the inputs are f32 and the script allows it
    flop: float
    read: int  # bytes
    written: int


def operation_of(func, args, kwargs, result):
    """Returns the Operation of a call that a TorchDispatchMode saw, or None if it launches no kernel."""
    about = _about(func)
    if about.nothing:
        return None
    kwargs = kwargs or {}
    inputs, outputs, written = [], [], []
    for place, value in enumerate(args):
        _sort(value, place in about.writes, inputs, written)
    for name, value in kwargs.items():
        _sort(value, name in about.writes, outputs if name in about.outs else inputs, written)
    results = _tensors(result, [])
    if not inputs and not outputs and not results:
        return None
    flop = _flop(func, about, args, kwargs, result)
    read, wrote = _traffic(about.name, inputs, written, results)
    dtype = _compute_dtype(about.work, inputs or results)
    suffix = _layout(about.name, dtype, inputs) if about.work == CONVOLUTION else ""
    return Operation(about.name + suffix, about.work, dtype, float(flop), read, wrote)


class _About(typing.NamedTuple):
    name: str
    work: str
    nothing: bool
    writes: frozenset  # places and names of the arguments that the call writes
    outs: frozenset  # names of the arguments that it only writes
    causal: int  # place of is_causal, or -1
    formula: object  # of torch.utils.flop_counter, or None


@functools.lru_cache(maxsize=None)
def _about(func):
    schema = getattr(func, "_schema", None)
    if schema is None:  # a higher-order operator
        formula = _registry().get(func)
        return _About(str(func), ATTENTION if formula else UNKNOWN, False, frozenset(), frozenset(), -1, formula)
    space, name = schema.name.split("::")
    mutable = [(place, one) for place, one in enumerate(schema.arguments) if one.alias_info and one.alias_info.is_write]
    places = {place for place, one in mutable if not one.kwarg_only}
    outs = {one.name for _, one in mutable if one.kwarg_only}
    arguments = [one.name for one in schema.arguments]
    causal = next((arguments.index(one) for one in ("is_causal", "causal") if one in arguments), -1)
    nothing = func.is_view or space in OTHER_NAMESPACES or (space == "aten" and name in NO_KERNEL)
    formula = _formula(func, space, name)
    names = {one.name for _, one in mutable}
    return _About(name if space == "aten" else f"{space}.{name}", _work(space, name, formula), nothing,
                  frozenset(places | names), frozenset(outs), causal, formula)  # fmt: skip


def _registry():
    from torch.utils.flop_counter import flop_registry

    return flop_registry


def _formula(func, space, name):
    found = _registry().get(func.overloadpacket)
    if found is None and space == "aten" and name.endswith("_") and not name.startswith("_foreach"):
        found = _registry().get(getattr(torch.ops.aten, name[:-1], None))  # addmm_ and the like
    if found is None and space == "aten":
        found = OWN_FORMULAS.get(name)
    return found


def _work(space, name, formula):
    if "attention" in name:
        return ATTENTION if formula else UNKNOWN
    if name in CONVOLUTIONS or name.startswith("convolution_"):
        return CONVOLUTION
    if formula:
        return PRODUCT
    known = space in ("aten", "prims", "fsdp") and (name in NORMS or not name.startswith(NO_FORMULA))
    return MEMORY if known else UNKNOWN


def _plain_product_flop(args, result):
    matrices = [one for one in args if isinstance(one, torch.Tensor) and one.dim() >= 2]
    return 2 * result.numel() * matrices[-1].shape[-2] if matrices else 0


def _linear_flop(x, weight, *_args, out_val=None, **_kwargs):
    return 2 * out_val.numel() * x.shape[-1]


def _grouped_flop(a, b, *_args, out_val=None, **_kwargs):
    return 2 * a.numel() * (b.shape[-1] if a.dim() == 2 else out_val.shape[-1])


def _added_product_flop(_self, a, b, *_args, **_kwargs):
    return 2 * a.numel() * b.shape[-1]


def _recurrent_flop(x, weights, *_args, **_kwargs):
    """Each weight of a matrix is used once per time step and sample; x has both as its first two dimensions."""
    return 2 * x.shape[0] * x.shape[1] * sum(one.numel() for one in weights if one.dim() == 2)


def _recurrent_backward_flop(x, weights, *_args, **_kwargs):
    return 2 * _recurrent_flop(x, weights)


def _attention_flop(query, key, value, *_args, **_kwargs):
    """As sdpa of torch.utils.flop_counter, of which some versions lack the kernel of the CPU."""
    return 2 * query.shape[0] * query.shape[1] * query.shape[2] * key.shape[2] * (query.shape[3] + value.shape[3])


def _attention_backward_flop(_grad, query, key, value, *_args, **_kwargs):
    scores = query.shape[0] * query.shape[1] * query.shape[2] * key.shape[2]
    return 2 * scores * (3 * query.shape[3] + 2 * value.shape[3])


OWN_FORMULAS = {
    "linear": _linear_flop,
    "addbmm": _added_product_flop,
    "_addmm_activation": _added_product_flop,
    "_grouped_mm": _grouped_flop,
    "_scaled_grouped_mm": _grouped_flop,
    "_cudnn_rnn": _recurrent_flop,
    "_cudnn_rnn_backward": _recurrent_backward_flop,
    "_scaled_dot_product_flash_attention_for_cpu": _attention_flop,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward_flop,
    "_scaled_dot_product_cudnn_attention": _attention_flop,
    "_scaled_dot_product_cudnn_attention_backward": _attention_backward_flop,
    "_scaled_dot_product_fused_attention_overrideable": _attention_flop,
    "_scaled_dot_product_fused_attention_overrideable_backward": _attention_backward_flop,
}


def _flop(func, about, args, kwargs, result):
    if about.name.startswith("convolution_backward"):
        return _convolution_backward_flop(args)
    if about.formula is None:
        return 0
    try:
        flop = about.formula(*args, **kwargs, out_val=result)
    except (TypeError, AssertionError):  # an overload that this version's formula does not know
        return _plain_product_flop(args, result) if about.work == PRODUCT else 0
    if about.causal >= 0 and (args[about.causal] if about.causal < len(args) else kwargs.get("is_causal", False)):
        flop /= 2
    return flop


def _convolution_backward_flop(args):
    """Each of the two gradients costs as much as the forward pass."""
    gradient, x, weight, transposed, mask = args[0], args[1], args[2], args[7], args[10]
    places = math.prod(x.shape[2:] if transposed else gradient.shape[2:])
    return 2 * places * x.shape[0] * weight.numel() * (bool(mask[0]) + bool(mask[1]))


def _tensors(value, found):
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):  # Python 3.9
        for one in value:
            _tensors(one, found)
    return found


def _sort(value, written, inputs, outputs):
    found = _tensors(value, [])
    inputs.extend(found)
    if written:
        outputs.extend(found)


def _bytes(tensor):
    """Those that it has in memory: dimensions of stride 0 repeat the same elements."""
    if tensor.layout is not torch.strided:
        return sum(_bytes(part) for part in _parts(tensor))
    shape = [size for size, step in zip(tensor.shape, tensor.stride()) if step != 0 or size == 0]
    return int(math.prod(shape)) * tensor.element_size()


def _parts(tensor):
    if tensor.layout is torch.sparse_coo:
        return tensor._indices(), tensor._values()
    return (tensor.values(),) if hasattr(tensor, "values") and tensor.layout is not torch._mkldnn else ()


def _key(tensor):
    try:
        return tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
    except (RuntimeError, NotImplementedError):  # a subclass without storage
        return id(tensor)


def _total(tensors):
    distinct = {_key(one): one for one in tensors}
    return sum(_bytes(one) for one in distinct.values())


def _traffic(name, inputs, written, results):
    """Returns the bytes read and written."""
    if name in SCATTERS:
        rest = _total(inputs) - _bytes(inputs[0]) if inputs else 0
        values = max((_bytes(one) for one in inputs[1:] if one.dtype == inputs[0].dtype), default=rest)
        return rest + values, values
    known = {_key(one) for one in inputs}
    fresh = [one for one in results if _key(one) not in known]
    out = _total([*written, *fresh])
    if name in CREATES:
        index = [one for one in inputs if not one.is_floating_point()]
        gradient = inputs[:1] if name.endswith("backward") else []
        return _total([*gradient, *index]) if gradient else 0, out
    if name in GATHERS:
        index = [one for one in inputs if not one.is_floating_point()]
        taken = _total(fresh) if not name.startswith("nll_loss") else _total(index)
        return _total(index) + taken, out
    if name in OVERWRITES:
        skipped = {_key(one) for one in written}
        return _total([one for one in inputs if _key(one) not in skipped]), out
    passes = 2 if any(part in name for part in TWO_PASSES) else 1
    return passes * _total(inputs), out


def _compute_dtype(work, tensors):
    floats = [one for one in tensors if one.is_floating_point()] or tensors
    dtype = (floats[0] if work in (PRODUCT, CONVOLUTION, ATTENTION) else max(floats, key=_bytes)).dtype
    if dtype is torch.float32 and _allows_tf32(work):
        return "tf32"
    return DTYPES.get(dtype, str(dtype).removeprefix("torch.").replace("float", "f"))


def _layout(name, dtype, inputs):
    """Returns "_nchw" if tensor cores need another layout: cuDNN then copies the input and the result.
    As in PyTorch, it is channels-last if the input or the weight is: meta tensors lose the layout of the input."""
    images, weight = inputs[1:3] if "backward" in name else inputs[:2]
    return "_nchw" if dtype in TENSOR_CORES and not (_is_channels_last(images) or _is_channels_last(weight)) else ""


def _is_channels_last(tensor):
    strides = tensor.stride()
    return tensor.dim() >= 4 and strides[1] == 1 and strides[-1] == tensor.shape[1]


def _allows_tf32(work):
    if work in (PRODUCT, ATTENTION):
        backend, part = torch.backends.cuda.matmul, None
    elif work == CONVOLUTION:
        backend, part = torch.backends.cudnn, "conv"
    else:
        return False
    try:
        return bool(backend.allow_tf32)
    except RuntimeError:  # the script set the precision by the newer names
        return getattr(backend if part is None else getattr(backend, part), "fp32_precision", "ieee") == "tf32"
