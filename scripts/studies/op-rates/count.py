# SPDX-License-Identifier: Apache-2.0
"""Counts the operations of one training step of each row in rows.csv, on meta tensors: no GPU and no memory.

usage: count.py ROWS.csv COUNTS.json     (needs torch, torchvision, timm, transformers)

COUNTS.json has {key of the row: {"kinds": [...], "order": [...], "host_ops": N, "samples": N}}. Rows that differ only
in chip and rate share a key. A model that cannot be built is left out with a message.
"""

import contextlib
import csv
import json
import os
import pathlib
import sys
import time
import traceback

from keys import key_of

try:
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError as error:
    print(f"count.py needs {error.name}", file=sys.stderr)
    sys.exit(77)

os.environ["TIMM_FUSED_ATTN"] = "0"  # rows of timm are older than fused attention
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "benches/script/torch_hook/howmany_hook"))
from operations import operation_of  # noqa: E402

LOWER = {
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose2d",
    "matmul",
    "mm",
    "bmm",
    "addmm",
    "baddbmm",
    "einsum",
    "__matmul__",
    "addbmm",
    "scaled_dot_product_attention",
}
HIGHER = {
    "softmax",
    "log_softmax",
    "layer_norm",
    "group_norm",
    "cross_entropy",
    "nll_loss",
    "mse_loss",
    "norm",
    "pow",
    "exp",
    "log",
    "rsqrt",
    "cumsum",
    "prod",
    "sum",
    "softplus",
    "binary_cross_entropy_with_logits",
}
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}


def is_float(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


class Autocast(TorchFunctionMode):
    """As torch.autocast of a GPU, which meta tensors lack. Casts of parameters are kept for a forward pass."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype, self.kept = dtype, {}

    def lowered(self, value):
        if isinstance(value, list | tuple):
            return type(value)(self.lowered(one) for one in value)
        if not is_float(value) or value.dtype == self.dtype:
            return value
        if not (value.is_leaf and value.requires_grad):
            return value.to(self.dtype)
        if id(value) not in self.kept:
            self.kept[id(value)] = value.to(self.dtype)
        return self.kept[id(value)]

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        if name in LOWER:
            args = tuple(self.lowered(one) for one in args)
            kwargs = {key: self.lowered(one) for key, one in kwargs.items()}
        elif name in HIGHER:
            args = tuple(one.float() if is_float(one) else one for one in args)
            kwargs = {key: one.float() if is_float(one) else one for key, one in kwargs.items()}
        return func(*args, **kwargs)


class Fused(TorchFunctionMode):
    """Attention as a GPU computes it, in one kernel."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") != "scaled_dot_product_attention":
            return func(*args, **kwargs)
        q, k, v, *_ = args
        dropout, causal = kwargs.get("dropout_p", 0.0), kwargs.get("is_causal", False)
        if q.dtype == torch.float32:
            return torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, None, True, dropout, causal)[0]
        return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, dropout, causal)[0]


class Counter(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.kinds, self.places, self.order, self.host_ops, self.phase = [], {}, [], 0, "forward"

    def add(self, operation):
        kind = (*operation, self.phase)
        if kind not in self.places:
            self.places[kind] = len(self.kinds)
            self.kinds.append(dict(zip((*operation._fields, "phase"), kind, strict=True)))
        self.order.append(self.places[kind])

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.host_ops += 1
        operation = operation_of(func, args, kwargs, result)
        if operation:
            self.add(operation)
        return result


class Gpt2(torch.nn.Module):
    """As nanoGPT's and LLMs-from-scratch's GPT-2 of 124M parameters."""

    def __init__(self, vocabulary, fused, dropout, length=1024, width=768, layers=12, heads=12):
        super().__init__()
        nn = torch.nn
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers + 1))
        self.mixes = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.outs = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.ups = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(layers))
        self.downs = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.heads, self.fused, self.dropout = heads, fused, dropout
        self.mask = torch.ones(1, 1, length, length, dtype=torch.bool).tril()

    def attend(self, q, k, v):
        if self.fused:
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = (q @ k.transpose(-2, -1)) * (1 / q.shape[-1] ** 0.5)
        scores = scores.masked_fill(self.mask == 0, float("-inf"))
        return torch.nn.functional.dropout(torch.nn.functional.softmax(scores, dim=-1), self.dropout) @ v

    def forward(self, ids):
        def drop(value):
            return torch.nn.functional.dropout(value, self.dropout) if self.dropout else value

        batch, length = ids.shape
        x = drop(self.tokens(ids) + self.positions(torch.arange(length, device=ids.device)))
        for i, mix in enumerate(self.mixes):
            q, k, v = mix(self.norms[2 * i](x)).split(x.shape[-1], dim=2)
            q, k, v = (one.view(batch, length, self.heads, -1).transpose(1, 2) for one in (q, k, v))
            y = self.attend(q, k, v).transpose(1, 2).contiguous().view(batch, length, -1)
            x = x + drop(self.outs[i](y))
            x = x + drop(self.downs[i](torch.nn.functional.gelu(self.ups[i](self.norms[2 * i + 1](x)))))
        return self.head(self.norms[-1](x))


def transformer(name, row):
    """Returns a model of Hugging Face and a function of its loss."""
    import transformers

    large, length = "large" in name, int(row["length"])
    attention = {"attn_implementation": "eager" if row["attention"] == "eager" else "sdpa"}
    ids = torch.ones(int(row["batch"]), length, dtype=torch.int64)
    if name.startswith("bart"):
        model = transformers.BartForConditionalGeneration(transformers.BartConfig(**attention))
        return model, lambda: model(input_ids=ids, labels=ids, use_cache=False).loss
    mask = torch.zeros(int(row["batch"]), 1, 1, length, dtype=DTYPES.get(row["precision"], torch.float32))
    config = transformers.BertConfig(
        vocab_size=30528,
        hidden_size=1024 if large else 768,
        num_hidden_layers=24 if large else 12,
        num_attention_heads=16 if large else 12,
        intermediate_size=4096 if large else 3072,
        **attention,
    )
    if "squad" in name:
        model = transformers.BertForQuestionAnswering(config)
        places = torch.ones(int(row["batch"]), dtype=torch.int64)
        return (
            model,
            lambda: (
                model(ids, attention_mask=mask, token_type_ids=ids, start_positions=places, end_positions=places).loss
            ),
        )
    model = transformers.BertForPreTraining(config)
    return model, lambda: pretraining_loss(model, ids, mask, 20 if length == 128 else 80)


def pretraining_loss(model, ids, mask, predicted):
    """Only masked tokens reach the head, as in NVIDIA's and Google's programs."""
    cross_entropy = torch.nn.functional.cross_entropy
    hidden, pooled = model.bert(ids, attention_mask=mask, token_type_ids=ids)[:2]
    places = torch.zeros(ids.shape[0] * predicted, dtype=torch.int64)
    picked = hidden.reshape(-1, hidden.shape[-1]).index_select(0, places)
    words, follows = model.cls(picked, pooled)
    answers = torch.zeros(ids.shape[0], dtype=torch.int64)
    return cross_entropy(words.float(), places) + cross_entropy(follows.float(), answers)


def vision(name, row):
    source, _, arch = name.rpartition("/")
    if source == "timm":
        import timm

        model = timm.create_model(arch)
    elif arch == "resnext101_32x4d":
        import torchvision

        model = torchvision.models.ResNet(
            torchvision.models.resnet.Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=4
        )
    else:
        import torchvision

        extra = {"init_weights": False} if arch.startswith(("inception", "googlenet")) else {}
        model = getattr(torchvision.models, arch)(**extra)
    images = torch.empty(int(row["batch"]), 3, int(row["length"]), int(row["length"]))
    labels = torch.ones(int(row["batch"]), dtype=torch.int64)
    images, dtype = prepared(images, row), DTYPES.get(row["precision"])
    if row["channels_last"] == "1":
        model = model.to(memory_format=torch.channels_last)
    return model, lambda: torch.nn.functional.cross_entropy(model(images.to(dtype) if dtype else images), labels)


def prepared(images, row):
    return images.to(memory_format=torch.channels_last) if row["channels_last"] == "1" else images


def gpt2(name, row):
    _, vocabulary, *dropout = name.split("/")
    model = Gpt2(int(vocabulary), row["attention"] == "fused", 0.1 if dropout else 0.0)
    ids = torch.ones(int(row["batch"]), int(row["length"]), dtype=torch.int64)
    return model, lambda: torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())


def built(row):
    name = row["model"]
    make = gpt2 if name.startswith("gpt2") else transformer if name.startswith(("bert", "bart")) else vision
    return make(name, row)


def optimizer_of(row, parameters):
    name = row["optimizer"]
    if name == "sgd-loop":
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True, foreach=False)
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-4, foreach=True)
    if name == "adam":
        return torch.optim.AdamW(parameters, lr=0.1, foreach=True)
    return None


def add_fused(counter, row, parameters):
    """Fused Adam reads four tensors and writes three; LAMB also writes and reads the update."""
    from operations import Operation

    size = 4 * sum(one.numel() for one in parameters)
    extra = size if row["optimizer"] == "lamb" else 0
    half = size // 2 if row["precision"] == "f16" else 0  # master copies
    counter.add(Operation("_fused_adam_", "memory", "f32", 0.0, 4 * size + extra, 3 * size + extra + half))


def counted(row):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = row["precision"] != "f32"
    with torch.device("meta"):
        model, loss_of = built(row)
        model.train()
        if row["precision"] in DTYPES:
            model = model.to(DTYPES[row["precision"]])
            for part in model.modules():
                if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and not row["source"].startswith("ryu"):
                    part.float()
        parameters = [one for one in model.parameters() if one.requires_grad]
        optimizer = optimizer_of(row, parameters)
        lower = DTYPES.get(row["precision"].removeprefix("amp-")) if row["precision"].startswith("amp") else None
        counter = None
        for _ in range(2):  # the optimizer makes its state in the first
            counter = Counter()
            one_step(counter, loss_of, optimizer, lower, row)
    if row["optimizer"] in ("fused-adam", "lamb"):
        add_fused(counter, row, parameters)
    return {"kinds": counter.kinds, "order": counter.order, "host_ops": counter.host_ops, "samples": int(row["batch"])}


def one_step(counter, loss_of, optimizer, lower, row):
    with contextlib.ExitStack() as stack:
        stack.enter_context(counter)
        if optimizer:
            optimizer.zero_grad()
        with contextlib.ExitStack() as forward:
            if row["attention"] == "fused":
                forward.enter_context(Fused())
            if lower:
                forward.enter_context(Autocast(lower))
            loss = loss_of()
        counter.phase = "backward"
        loss.backward()
        counter.phase = "optimizer"
        if optimizer:
            optimizer.step()


def main():
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    rows_file, counts_file = sys.argv[1:]
    counts = json.loads(pathlib.Path(counts_file).read_text()) if pathlib.Path(counts_file).exists() else {}
    with open(rows_file, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    began = time.monotonic()
    for row in rows:
        key = key_of(row)
        if key in counts:
            continue
        try:
            counts[key] = counted(row)
        except Exception as error:  # any model may fail
            print(f"{key}: {error}", file=sys.stderr)
            if "--trace" in os.environ.get("COUNT_FLAGS", ""):
                traceback.print_exc()
    pathlib.Path(counts_file).write_text(json.dumps(counts))
    print(f"{len(counts)} counts in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
