# SPDX-License-Identifier: Apache-2.0
"""What a script sees of a GPU that is pretended (pretend.py): tensors of `cuda`, torch.cuda, and what would compile.

Memory figures are 0. Streams and events do nothing: the operations are counted in the order of the calls.
"""

import contextlib
import functools
import os
import types

import torch
from torch.utils import _device

from howmany_hook.pretend import device_of


class Stream:
    def __init__(self, *args, **kwargs):
        self.device, self.cuda_stream, self.device_index = torch.device("cuda", 0), 0, 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def query(self):
        return True

    def is_capturing(self):
        return False

    def record_event(self, event=None):
        return event or Event()

    synchronize = wait_event = wait_stream = lambda *args, **kwargs: None


class Event:
    def __init__(self, *args, **kwargs):
        pass

    def query(self):
        return True

    def elapsed_time(self, other):
        return 1.0  # ms

    record = wait = synchronize = lambda *args, **kwargs: None


class Generator(torch.Generator):
    def __new__(cls, device="cpu"):
        return super().__new__(cls, "cpu")


def _returns(value):
    return lambda *args, **kwargs: value


def _functions(device):
    """Of torch.cuda."""
    name, memory, capability = device["name"], int(device["memory"]), tuple(device["capability"])
    properties = types.SimpleNamespace(
        name=name, total_memory=memory, major=capability[0], minor=capability[1], multi_processor_count=108,
        is_integrated=0, is_multi_gpu_board=0, warp_size=32, max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536, gcnArchName="", uuid="", L2_cache_size=40 << 20,
        shared_memory_per_block=49152, shared_memory_per_block_optin=166912,
    )  # fmt: skip
    memories = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached")
    silent = (
        "_lazy_init", "init", "set_device", "synchronize", "empty_cache", "manual_seed", "manual_seed_all", "seed",
        "seed_all", "set_rng_state", "set_rng_state_all", "reset_peak_memory_stats", "reset_max_memory_allocated",
        "reset_max_memory_cached", "reset_accumulated_memory_stats", "ipc_collect", "set_per_process_memory_fraction",
        "set_stream", "_sleep",
    )  # fmt: skip
    return {name: _returns(None) for name in silent} | {name: _returns(0) for name in memories} | {
        "is_available": _returns(True),  # dynamo wants another function for each
        "is_initialized": _returns(True),
        "_is_compiled": _returns(True),
        "is_bf16_supported": _returns(capability >= (8, 0)),
        "is_tf32_supported": _returns(capability >= (8, 0)),
        "device_count": _returns(device["devices"]),
        "_device_count_nvml": _returns(device["devices"]),
        "current_device": _returns(0),
        "get_device_name": _returns(name),
        "get_device_capability": _returns(capability),
        "get_device_properties": _returns(properties),
        "get_arch_list": _returns(["sm_%d%d" % capability]),
        "mem_get_info": _returns((memory, memory)),
        "memory_stats": _returns({}),
        "memory_summary": _returns(""),
        "get_rng_state": lambda *args, **kwargs: torch.get_rng_state(),
        "get_rng_state_all": lambda *args, **kwargs: [torch.get_rng_state()],
        "initial_seed": lambda: torch.initial_seed(),
        "utilization": _returns(0),
        "is_current_stream_capturing": _returns(False),
        "current_stream": lambda *args, **kwargs: Stream(),
        "default_stream": lambda *args, **kwargs: Stream(),
        "stream": lambda *args, **kwargs: contextlib.nullcontext(),
        "device": lambda *args, **kwargs: contextlib.nullcontext(),
        "device_of": lambda *args, **kwargs: contextlib.nullcontext(),
        "Stream": Stream,
        "Event": Event,
    }  # fmt: skip


def _accelerator(device):
    """Of torch.accelerator (2.6)."""
    cuda = _functions(device)
    names = ("is_available", "device_count", "set_device", "synchronize", "current_stream", "set_stream", "empty_cache")
    return {name: cuda[name] for name in names} | {
        "current_accelerator": _returns(torch.device("cuda")),
        "current_device_index": _returns(0),
        "set_device_index": _returns(None),
        "device_index": lambda *args, **kwargs: contextlib.nullcontext(),
    }


def _save(thing, file, *args, **kwargs):
    """There are no values to save. Scripts rename and remove the file."""
    if isinstance(file, (str, os.PathLike)):
        with open(file, "wb"):
            pass


def _replace(module, functions):
    for name, function in functions.items():
        if hasattr(module, name):
            setattr(module, name, function)


def _on_tensors(mode):
    """Tensors without values, or of the GPU."""
    cpu, gpu = torch.device("cpu"), torch.device("cuda", 0)
    kind = torch.Tensor
    plain = {name: getattr(kind, name) for name in ("numpy", "tolist", "to", "__deepcopy__", "__repr__", "type")}

    def device(tensor):
        real = device_of(tensor)
        if mode.inside or real.type not in ("cpu", "meta"):
            return real
        return gpu if mode.on_gpu(tensor) else cpu

    def numpy(tensor, *args, **kwargs):
        return plain["numpy"](_on_host(tensor), *args, **kwargs)

    def tolist(tensor):
        return plain["tolist"](_on_host(tensor))

    def _on_host(tensor):
        return mode.values(tensor.detach()) if mode.without_values(tensor) else tensor

    def to(tensor, *args, **kwargs):
        args = [placed(word) for word in args]
        kwargs = {name: placed(word) for name, word in kwargs.items()}
        words = [*args, *kwargs.values()]
        rest = [word for word in words if word is not None and not isinstance(word, (bool, torch.device))]
        stays = not kwargs.get("copy") and all(one == tensor.dtype for one in rest)
        if stays and (gpu in words and mode.on_gpu(tensor) or cpu in words and mode.waits(tensor)):
            return tensor
        mode.to_host = cpu in words
        try:
            return plain["to"](tensor, *args, **kwargs)
        finally:
            mode.to_host = False

    def placed(word):
        if mode.inside:  # DTensor moves the state of its random numbers
            return cpu if _with_index(word) == gpu else word
        if isinstance(word, int) and not isinstance(word, bool):
            return gpu
        return torch.device(_with_index(word)) if isinstance(word, (str, torch.device)) else word

    def cuda(tensor, device=None, *args, **kwargs):
        return tensor if mode.on_gpu(tensor) else plain["to"](tensor, gpu)

    def deepcopy(tensor, memo):
        if not mode.without_values(tensor) or not tensor.is_leaf:
            return plain["__deepcopy__"](tensor, memo)
        if id(tensor) not in memo:
            copy = tensor.detach().clone()
            copy = type(tensor)(copy, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else copy
            memo[id(tensor)] = copy.requires_grad_(tensor.requires_grad)
        return memo[id(tensor)]

    def text(tensor, **kwargs):
        if not mode.without_values(tensor):
            return plain["__repr__"](tensor, **kwargs)
        return f"tensor(..., device='{tensor.device}', size={tuple(tensor.shape)})"

    def type_of(tensor, dtype=None, *args, **kwargs):
        if dtype is None and mode.on_gpu(tensor):
            return f"torch.cuda.{plain['type'](torch.empty(0, dtype=tensor.dtype)).split('.')[-1]}"
        if isinstance(dtype, str) and dtype.startswith("torch.cuda."):
            return tensor.cuda().to(getattr(torch, dtype.split(".")[-1]).dtype)
        return plain["type"](tensor, dtype, *args, **kwargs)

    data = torch._C.TensorBase.data

    def set_data(tensor, value):
        """A tensor of the CPU that moves to the GPU changes its type, which C++ refuses."""
        if mode.without_values(tensor) == mode.without_values(value):
            return data.__set__(tensor, value)
        torch.utils.swap_tensors(tensor, value.detach().requires_grad_(tensor.requires_grad))

    kind.data = property(lambda tensor: data.__get__(tensor), set_data)
    kind.device = property(device)
    kind.is_cuda = property(lambda tensor: tensor.device.type == "cuda")
    kind.is_cpu = property(lambda tensor: tensor.device.type == "cpu")
    kind.is_meta = property(lambda tensor: tensor.device.type == "meta")
    kind.get_device = lambda tensor: 0 if tensor.is_cuda else -1
    kind.numpy, kind.tolist, kind.to, kind.cuda, kind.type = numpy, tolist, to, cuda, type_of
    kind.cpu = lambda tensor, *args, **kwargs: to(tensor, cpu)
    kind.__deepcopy__, kind.__repr__ = deepcopy, text
    kind.record_stream = _returns(None)
    kind.pin_memory = lambda tensor, *args: tensor
    kind.is_pinned = lambda tensor, *args: False
    kind.share_memory_ = lambda tensor: tensor


def _on_questions(mode):
    """Values that are not known are finite."""
    finite = torch.isfinite

    def isfinite(tensor):
        if mode.on_gpu(tensor) and mode.without_values(tensor):
            return torch.ones(tensor.shape, dtype=torch.bool, device="cuda")
        return finite(tensor)

    torch.isfinite = torch.Tensor.isfinite = isfinite


def _with_index(device):
    """C++ asks CUDA for the index if there is none."""
    is_name = isinstance(device, (str, torch.device))
    return torch.device("cuda", 0) if is_name and torch.device(device).type == "cuda" else device


def _on_constructors():
    def indexed(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            if "device" in kwargs:
                kwargs["device"] = _with_index(kwargs["device"])
            return function(*args, **kwargs)

        return call

    _device._device_constructors()  # keeps the functions of C++, which `with torch.device()` looks for
    for name in ("tensor", "as_tensor", "asarray"):
        setattr(torch, name, indexed(getattr(torch, name)))
    context = _device.DeviceContext
    begin = context.__init__
    context.__init__ = lambda self, device: begin(self, _with_index(device))


def _on_parameters(mode):
    make = torch.nn.Parameter.__new__

    def new(cls, data=None, *args, **kwargs):
        if type(data) is torch.Tensor:
            data = mode.parameter(data)
        return make(cls, data, *args, **kwargs)

    torch.nn.Parameter.__new__ = staticmethod(new)


def _on_loaders():
    """There is no memory to pin. One process makes the batches, so that its time is that of a core."""
    start = torch.utils.data.DataLoader.__init__

    @functools.wraps(start)
    def init(self, *args, **kwargs):
        start(self, *args, **kwargs)
        self.pin_memory = False
        self.asked_workers = self.num_workers
        for name, value in {"num_workers": 0, "persistent_workers": False}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "prefetch_factor", None)
        object.__setattr__(self, "_DataLoader__multiprocessing_context", None)

    def iterate(self, loader, *args, **kwargs):
        self.asked_workers = getattr(loader, "asked_workers", 0)
        iterates(self, loader, *args, **kwargs)

    iterator = torch.utils.data.dataloader._BaseDataLoaderIter
    iterates, iterator.__init__ = iterator.__init__, iterate
    torch.utils.data.DataLoader.__init__ = init


def _on_compilers(compiled):
    def compile(model=None, *args, **kwargs):
        compiled()
        return model if model is not None else lambda function: function

    def compile_module(self, *args, **kwargs):
        compiled()

    torch.compile = compile
    torch.nn.Module.compile = compile_module
    torch.jit.script = lambda function, *args, **kwargs: function  # it cannot compile functions of Python that replace those of C++


def install(mode, device, compiled):
    """`device`: name, memory, capability, devices. Calls `compiled` if the script compiles something."""
    _replace(torch.cuda, _functions(device))
    if hasattr(torch, "accelerator"):
        _replace(torch.accelerator, _accelerator(device))
    if torch.version.cuda is None:
        torch.version.cuda = "12.8"
    torch.Generator = Generator
    _replace(torch._C, {"_get_accelerator": lambda *args: torch.device("cuda")})
    torch._C._set_only_lift_cpu_tensors(True)
    torch.save = _save
    _on_tensors(mode)
    _on_questions(mode)
    _on_constructors()
    _on_parameters(mode)
    _on_loaders()
    _on_compilers(compiled)
