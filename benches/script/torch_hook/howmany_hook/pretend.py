# SPDX-License-Identifier: Apache-2.0
"""A GPU that is not here, for the script of this process (howmany gpus --cluster, without a GPU).

Tensors on it are `meta` tensors: they have shapes, types and strides, no values. Tensors of the CPU stay real, so the
script's data, its samplers and its arguments are what they are. Parameters are made without values at once, so that a
model of any size fits here.

Device. torch sees `meta`; the script sees `cuda:0` (Tensor.device, is_cuda). Storages of parameters that the script has
    not moved yet are remembered as those of the CPU.
Values. A small tensor (KNOWN elements) that was made on the CPU, or from such tensors alone, keeps its values beside it.
    Others are made up where the script asks: 1, False, or "all of them". `answered` counts these by operation.
Real. If the device is `real`, its tensors are those of the CPU with values, and their storages are remembered.

Thread safety. Call from the thread that trains. A dispatch mode is of one thread.
"""

import collections
import functools
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

KNOWN, MADE_UP = 1 << 16, 1 << 26  # elements
aten = torch.ops.aten
device_of = torch._C.TensorBase.device.__get__


class Refused(Exception):
    """What follows depends on values that are not here."""


class Storages:
    """A set of storages."""

    def __init__(self):
        self._keys = {}

    def add(self, tensor):
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._keys:
            self._keys[key] = weakref.ref(storage, lambda _: self._keys.pop(key, None))

    def __contains__(self, tensor):
        if not self._keys:
            return False
        try:
            return tensor.untyped_storage()._cdata in self._keys
        except (NotImplementedError, RuntimeError):  # it has none
            return False


def _is_plain(tensor):
    return isinstance(tensor, torch.Tensor) and not hasattr(tensor, "__tensor_flatten__")


def _known(tensor):
    return getattr(tensor, "_howmany_values", None)


def _is_gpu_device(device):
    return device is not None and torch.device(device).type in ("cuda", "meta")


@functools.lru_cache(maxsize=None)
def _is_composite(func):
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")


def _writes(func):
    return func._schema.is_mutable


class Pretended(TorchDispatchMode):
    """Runs the operations of all tensors. `counter.saw(func, args, kwargs, result)` gets those of the GPU."""

    def __init__(self, real, counter):
        super().__init__()
        self.real = real
        self.inside = False  # an operation runs: PyTorch's own Python code sees the real devices
        self._counter = counter
        self._marked = Storages()  # of the GPU if `real`, else those without values of the CPU
        self.to_host = False  # the script copies to the CPU
        self.answered = collections.Counter()
        self._handlers = {
            aten._to_copy: self._moved,
            aten.copy_: self._copied,
            aten._local_scalar_dense: self._item,
            aten.equal: self._equal,
            aten.nonzero: self._nonzero,
            aten.index: self._indexed,
            aten.masked_select: self._selected,
            aten._unique2: self._resized,
            aten._cudnn_rnn_backward: self._recurrent_backward,
            aten._pin_memory: lambda func, args, kwargs: args[0],
        }

    @classmethod
    def _should_skip_dynamo(cls):  # else torch imports it, which takes a second; nothing is compiled
        return False

    # Places of tensors.

    def on_gpu(self, tensor):
        if self.real:
            return tensor in self._marked
        return device_of(tensor).type == "meta" and tensor not in self._marked

    def without_values(self, tensor):
        return device_of(tensor).type == "meta"

    def waits(self, tensor):
        """True for a tensor of the CPU without values."""
        return self.without_values(tensor) and tensor in self._marked

    def values(self, tensor):
        """Returns a real tensor; the values are made up if they are not known."""
        if _known(tensor) is not None:
            return _known(tensor)
        self.answered["values"] += 1
        return torch.ones(tensor.shape, dtype=tensor.dtype)

    def parameter(self, data):
        """Returns what a parameter of the CPU has for its data."""
        if self.real or not _is_plain(data) or self.without_values(data) or device_of(data).type != "cpu":
            return data
        with torch._C._DisableTorchDispatch():
            empty = data.detach().to("meta")
        self._marked.add(empty)
        return empty

    def paused(self, fetch):
        """While a DataLoader makes a batch, its tensors are real and do not count."""

        @functools.wraps(fetch)
        def fetched(iterator):
            with _disable_current_modes():
                return fetch(iterator)

        return fetched

    # Operations.

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        run = self._distributed if any(kind.__name__ == "DTensor" for kind in types) else self._run_one
        before, self.inside = self.inside, True
        try:
            return run(func, args, kwargs or {})
        finally:
            self.inside = before

    def _run_one(self, func, args, kwargs):
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        device = kwargs.get("device")
        of_gpu = _is_gpu_device(device) or any(self.on_gpu(t) for t in tensors)
        if not of_gpu and not any(self.without_values(t) for t in tensors):
            return func(*args, **kwargs)
        if _is_composite(func):  # in inference mode
            with self:
                return func.decompose(*args, **kwargs)
        if not of_gpu:
            return self._without_values_on_cpu(func, args, kwargs)
        handler = self._handlers.get(func.overloadpacket)
        if handler:
            return handler(func, args, kwargs)
        return self._on_gpu(func, args, kwargs)

    def _distributed(self, func, args, kwargs):
        """A DTensor counts by its own part. The operations within it are not seen here."""
        if func.overloadpacket in (aten.normal_, aten.uniform_) and not self.real:
            return args[0]  # it would ask the GPU for the state of its random numbers
        result = func(*args, **self._placed(kwargs))

        def own(value):
            return getattr(value, "_local_tensor", value)

        parts = [tree_map(own, one) for one in (args, kwargs, result)]
        if all(isinstance(x, torch.Tensor) and self.on_gpu(x) for x in tree_leaves(parts[2])):
            self._counter.saw(func, *parts)
        return result

    def _without_values_on_cpu(self, func, args, kwargs):
        if func is aten.copy_.default and not self.without_values(args[0]):
            return args[0]
        if func is aten._local_scalar_dense.default:
            return self._item(func, args, kwargs)
        result = func(*self._emptied(args), **self._emptied(self._placed(kwargs)))
        for one in tree_leaves(result):
            if isinstance(one, torch.Tensor):
                self._marked.add(one)
        return result

    def _on_gpu(self, func, args, kwargs):
        values = self._values_of(func, args, kwargs)
        result = self._run(func, args, kwargs)
        self._keep(func, args, result, values)
        self._counter.saw(func, args, kwargs, result)
        return result

    def _run(self, func, args, kwargs):
        if self.real:
            result = func(*args, **self._placed(kwargs))
            for one in tree_leaves(result):
                if isinstance(one, torch.Tensor):
                    self._marked.add(one)
            return result
        if func is aten._pack_padded_sequence.default:  # the lengths are those of the CPU
            return func(self._emptied(args[0]), *args[1:], **kwargs)
        try:
            return func(*self._emptied(args), **self._emptied(self._placed(kwargs)))
        except NotImplementedError:  # it has no rule for shapes
            return self._by_values(func, args, kwargs)

    def _by_values(self, func, args, kwargs):
        """Returns the shapes of a real operation with values that are made up."""
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        if sum(t.numel() for t in tensors) > MADE_UP:
            raise Refused(f"PyTorch does not know the shapes of {func}")
        self._made_up(func)
        return self._emptied(self._really(func, args, kwargs))

    def _really(self, func, args, kwargs):
        """Returns the result of the real operation. Values that are not known are 1."""

        def real(value):
            if not isinstance(value, torch.Tensor) or not self.without_values(value):
                return value
            return torch.ones(value.shape, dtype=value.dtype) if _known(value) is None else _known(value)

        placed = {k: "cpu" if k == "device" else v for k, v in kwargs.items()}
        return func(*tree_map(real, args), **tree_map(real, placed))

    def _placed(self, kwargs):
        device = "cpu" if self.real else "meta"
        return {k: device if k == "device" else False if k == "pin_memory" else v for k, v in kwargs.items()}

    def _emptied(self, values):
        def emptied(value):
            if not isinstance(value, torch.Tensor) or self.without_values(value):
                return value
            with torch._C._DisableTorchDispatch():
                return value.to("meta")

        return tree_map(emptied, values)

    # Known values.

    def _values_of(self, func, args, kwargs):
        """Returns the result of the real operation if all inputs are known, else None."""
        if self.real or func.overloadpacket in (aten.empty, aten.empty_strided, aten.empty_like):
            return None
        leaves = tree_leaves((args, kwargs))
        tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
        if any(_known(t) is None and self.without_values(t) or t.numel() > KNOWN for t in tensors):
            return None
        if not tensors and not self._is_small(func, args, kwargs):
            return None
        try:
            return self._really(func, args, kwargs)
        except Exception:
            return None

    def _is_small(self, func, args, kwargs):
        result = func(*args, **self._placed(kwargs))
        return isinstance(result, torch.Tensor) and result.numel() <= KNOWN

    def _keep(self, func, args, result, values):
        if _writes(func) and values is None:
            for one in tree_leaves(args):
                if isinstance(one, torch.Tensor) and _known(one) is not None and one is result:
                    del one._howmany_values
        if values is None:
            return
        results, real = tree_leaves(result), tree_leaves(values)
        if len(results) != len(real):
            return
        for one, value in zip(results, real):
            if isinstance(one, torch.Tensor) and isinstance(value, torch.Tensor) and value.numel() <= KNOWN:
                if not (one.requires_grad and one.is_leaf):
                    one._howmany_values = value

    def _made_up(self, func):
        self.answered[func.overloadpacket.__name__] += 1

    # Operations that move or read values.

    def _moved(self, func, args, kwargs):
        tensor, device = args[0], kwargs.get("device")
        stays = self.real and not self.to_host and self.on_gpu(tensor)  # for C++, this cast is on a CPU
        if stays or device is None or _is_gpu_device(device):
            if self.on_gpu(tensor):
                return self._on_gpu(func, args, kwargs)
            result = self._run(func, args, kwargs)  # a copy over the bus, not by a kernel
            if not self.real and not self.without_values(tensor) and tensor.numel() <= KNOWN:
                result._howmany_values = tensor.detach().to(result.dtype)
            return result
        dtype = kwargs.get("dtype") or tensor.dtype
        if self.real:
            with torch._C._DisableTorchDispatch():
                return tensor.to(dtype, copy=True)
        if _known(tensor) is not None:
            return _known(tensor).to(dtype, copy=True)
        result = torch.empty_like(tensor, dtype=dtype, device="meta")
        self._marked.add(result)
        return result

    def _copied(self, func, args, kwargs):
        target, source = args[:2]
        if self.real:
            return self._on_gpu(func, args, kwargs)
        if not self.without_values(target):
            if _known(source) is not None:
                target.copy_(_known(source))
            else:
                self._made_up(func)
            return target
        if not self.on_gpu(source):
            if _known(target) is not None and not self.without_values(source):
                _known(target).copy_(source)
            return target
        return self._on_gpu(func, args, kwargs)

    def _item(self, func, args, kwargs):
        tensor = args[0]
        if not self.without_values(tensor):
            return func(*args, **kwargs)
        if _known(tensor) is not None:
            return _known(tensor).item()
        self._made_up(func)
        if tensor.dtype is torch.bool:
            return False
        return 1.0 if tensor.is_floating_point() else 1

    def _equal(self, func, args, kwargs):
        a, b = (_known(t) if self.without_values(t) else t for t in args[:2])
        if a is not None and b is not None:
            return func(a, b)
        self._made_up(func)
        return args[0].shape == args[1].shape

    def _nonzero(self, func, args, kwargs):
        tensor = args[0]
        if self.real or _known(tensor) is not None:
            return self._resized(func, args, kwargs)
        self._made_up(func)
        return torch.empty(tensor.numel(), tensor.dim(), dtype=torch.int64, device="cuda")

    def _resized(self, func, args, kwargs):
        """The shape of the result follows from known values."""
        if self.real:
            return self._on_gpu(func, args, kwargs)
        values = self._values_of(func, args, kwargs)
        if values is None:
            raise Refused(f"the shape of {func.overloadpacket.__name__} depends on values")

        def emptied(value):
            if not isinstance(value, torch.Tensor):
                return value
            result = self._emptied(value)
            result._howmany_values = value
            return result

        result = tree_map(emptied, values)
        self._counter.saw(func, args, kwargs, result)
        return result

    def _indexed(self, func, args, kwargs):
        masks = [i for i in args[1] if i is not None and i.dtype in (torch.bool, torch.uint8)]
        if self.real or not masks:
            return self._on_gpu(func, args, kwargs)
        indices = []
        for one in args[1]:
            if one is None or one.dtype not in (torch.bool, torch.uint8):
                indices.append(one)
                continue
            known = _known(one) if self.without_values(one) else one
            if known is None:
                self._made_up(func)
                found = torch.empty(one.numel(), one.dim(), dtype=torch.int64, device="cuda")
            else:
                found = self._emptied(known.nonzero())
            indices += found.unbind(1)
        return self._on_gpu(func, (args[0], indices), kwargs)

    def _selected(self, func, args, kwargs):
        if self.real:
            return self._on_gpu(func, args, kwargs)
        tensor, mask = args[:2]
        known = _known(mask) if self.without_values(mask) else mask
        shape = torch.broadcast_shapes(tensor.shape, mask.shape)
        if known is None:
            self._made_up(func)
        size = shape.numel() if known is None else int(known.expand(shape).sum())
        result = torch.empty(size, dtype=tensor.dtype, device="meta")
        self._counter.saw(func, args, kwargs, result)
        return result

    def _recurrent_backward(self, func, args, kwargs):
        """PyTorch has no shapes for it."""
        if self.real:
            return self._on_gpu(func, args, kwargs)
        inputs, weights, hidden, cell = args[0], args[1], args[4], args[5]
        result = (torch.empty_like(inputs), torch.empty_like(hidden), None if cell is None else torch.empty_like(cell),
                  [torch.empty_like(one) for one in weights])  # fmt: skip
        self._counter.saw(func, args, kwargs, result)
        return result
