#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints golden_sums.json: results of PyTorch in f64, for the tests that include golden.h.

    python3 scripts/studies/golden.py > tests/data/golden_sums.json      (needs torch and transformers; made with 2.13.0)

Llama and BERT are compared with Hugging Face's before their results are kept.

Inputs are waves, sin(0.7 i + phase) over the flat row-major index, so that both sides can compute
them. A tensor t is stored as the sums of t[i] sin(1.1 i + 0.3) and of t[i] cos(0.9 i); any misplaced or wrong element changes them. The
layouts in C++ are [N,H,W,C] for images and [out,K,K,in] for kernels, so both are permuted on the
way in and out.
"""
import copy
import json
from collections import OrderedDict

import torch
from torch import nn
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
golden = {}


def wave(shape, phase, scale=1.0):
    n = torch.Size(shape).numel()
    return (scale * torch.sin(0.7 * torch.arange(n, dtype=torch.float64) + phase)).reshape(shape)


def keep(name, t):
    t = t.detach().reshape(-1)
    i = torch.arange(t.numel(), dtype=torch.float64)
    golden[name] = ((t * torch.sin(1.1 * i + 0.3)).sum().item(), (t * torch.cos(0.9 * i)).sum().item())


def nchw(t):
    return t.permute(0, 3, 1, 2)


def nhwc(t):
    return t.permute(0, 2, 3, 1)


def leaf(t):
    return t.clone().requires_grad_()


def keep_layer(name, function, inputs, images=()):
    """Keeps y of function(*inputs) and the gradient of each input, for dy = wave(phase 9)."""
    leaves = [leaf(t) for t in inputs]
    y = function(*[nchw(t) if i in images else t for i, t in enumerate(leaves)])
    y = nhwc(y) if images else y
    y.backward(wave(y.shape, 9))
    keep(f"{name}.y", y)
    for i, t in enumerate(leaves):
        keep(f"{name}.d{i}", t.grad)


def layers():
    linear = [wave((3, 5), 1), wave((4, 5), 2), wave((4,), 3)]
    keep_layer("linear", F.linear, linear)
    keep_layer("linear_relu", lambda *a: F.relu(F.linear(*a)), linear)
    keep_layer("linear_gelu", lambda *a: F.gelu(F.linear(*a)), linear)
    keep_layer("gelu", F.gelu, [wave((3, 5), 1, 4.0)])
    image = wave((2, 5, 4, 3), 1)
    keep_layer("conv2d", lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1),
               [image, wave((4, 3, 3, 3), 2), wave((4,), 3)], images=(0, 1))
    keep_layer("layernorm", lambda x, w, b: F.layer_norm(x, (5,), w, b),
               [wave((3, 5), 1), wave((5,), 2), wave((5,), 3)])
    keep_layer("max_pool", lambda x: F.max_pool2d(x, 3, 2, 1), [image], images=(0,))
    keep_layer("avg_pool", lambda x: F.avg_pool2d(x, 3, 2, 1), [image], images=(0,))
    ids = torch.tensor([[1, 4, 1], [0, 6, 1]])
    keep_layer("embedding", lambda w: F.embedding(ids, w), [wave((7, 4), 1)])
    batchnorm(relu=False)
    batchnorm(relu=True)
    qkv = wave((2, 5, 18), 1)
    keep_layer("attention", lambda x: attention(x, 3), [qkv])
    keep_layer("attention_both_ways", lambda x: attention(x, 1, causal=False), [qkv])
    keep_layer("groupnorm", lambda x, w, b: F.group_norm(x, 2, w, b),
               [wave((2, 3, 4, 6), 1), wave((6,), 2), wave((6,), 3)], images=(0,))
    keep_layer("rmsnorm", lambda x, w: F.rms_norm(x, (5,), w, 1e-6), [wave((3, 5), 1), wave((5,), 2)])
    keep_layer("swiglu", lambda x: F.silu(x[..., :5]) * x[..., 5:], [wave((3, 10), 1, 4.0)])
    keep_layer("rotary", lambda x: rotary(x, 4, 2, 7.0), [wave((2, 5, 32), 1)])
    keep_layer("segment", lambda x, w: x + w[0], [wave((2, 3, 4), 1), wave((2, 4), 2)])
    keep_layer("position", lambda x, w: x + w[:x.shape[1]], [wave((2, 3, 4), 1), wave((5, 4), 2)])


def rotary(x, heads, kv, base):
    """Hugging Face's apply_rotary_pos_emb and repeat_kv, for q, k and v in one tensor."""
    n, times, width = x.shape
    size = width // (heads + 2 * kv)
    x = x.reshape(n, times, heads + 2 * kv, size)
    turns = torch.outer(torch.arange(times) * 1.0, base ** (-torch.arange(0, size, 2) / size)).repeat(1, 2)
    half = torch.cat((-x[..., size // 2:], x[..., :size // 2]), -1)
    turned = x * turns.cos()[:, None] + half * turns.sin()[:, None]
    q, k, v = turned[:, :, :heads], turned[:, :, heads:heads + kv], x[:, :, heads + kv:]
    k, v = (t.repeat_interleave(heads // kv, 2) for t in (k, v))
    return torch.cat((q, k, v), 2).reshape(n, times, -1)


def attention(qkv, heads, causal=True):
    n, times, width = qkv.shape
    parts = [t.reshape(n, times, heads, width // 3 // heads).transpose(1, 2) for t in qkv.chunk(3, -1)]
    return F.scaled_dot_product_attention(*parts, is_causal=causal).transpose(1, 2).reshape(n, times, -1)


def batchnorm(relu):
    name = "batchnorm_relu" if relu else "batchnorm"
    mean, var = wave((3,), 4), wave((3,), 5) + 2
    act = F.relu if relu else (lambda t: t)
    parts = [wave((2, 5, 4, 3), 1), wave((3,), 2), wave((3,), 3)]
    keep_layer(name, lambda x, w, b: act(F.batch_norm(x, mean, var, w, b, True)), parts, images=(0,))
    keep(f"{name}.running_mean", mean)
    keep(f"{name}.running_var", var)
    keep(f"{name}.inference",
         nhwc(act(F.batch_norm(nchw(parts[0]), mean, var, parts[1], parts[2], False))))


def losses():
    logits, target = leaf(wave((3, 5), 1, 5.0)), torch.tensor([4, 0, 2])
    loss = F.cross_entropy(logits, target)
    loss.backward()
    keep("cross_entropy.loss", loss)
    keep("cross_entropy.d", logits.grad)
    y = leaf(wave((3, 2), 1))
    loss = F.mse_loss(y, wave((3, 2), 2))
    loss.backward()
    keep("mse.loss", loss)
    keep("mse.d", y.grad)


def optimizers():
    rules = {
        "sgd": (torch.optim.SGD, dict(lr=0.1)),
        "sgd_decay": (torch.optim.SGD, dict(lr=0.1, weight_decay=0.05)),
        "sgd_momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9)),
        "sgd_nesterov": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.05)),
        "sgd_dampening": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.05)),
        "adam": (torch.optim.Adam, dict(lr=0.02)),
        "adam_decay": (torch.optim.Adam, dict(lr=0.02, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.05)),
        "adamw": (torch.optim.AdamW, dict(lr=0.02, weight_decay=0.05)),
    }
    for name, (rule, options) in rules.items():
        w = leaf(wave((7,), 1))
        optimizer = rule([w], **options)
        for step in range(4):
            w.grad = wave((7,), 2 + step)
            optimizer.step()
            keep(f"{name}.{step}", w)


class Block(torch.nn.Module):
    """A block of ResNet-18 or 34 (kernels 3, 3) or ResNet-50 (kernels 1, 3, 1)."""

    def __init__(self, cin, width, kernels, stride):
        super().__init__()
        self.depth = len(kernels)
        cout = self.channels = width if self.depth == 2 else 4 * width
        channels = [cin] + [width] * (self.depth - 1) + [cout]
        strided = kernels.index(3)
        for i, size in enumerate(kernels):
            setattr(self, f"conv{i + 1}", nn.Conv2d(channels[i], channels[i + 1], size, stride if i == strided else 1,
                                                    size // 2, bias=False))
            setattr(self, f"bn{i + 1}", nn.BatchNorm2d(channels[i + 1]))
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))
        else:
            self.downsample = nn.Identity()

    def forward(self, x):
        y = x
        for i in range(1, self.depth + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            y = F.relu(y) if i < self.depth else y
        return F.relu(y + self.downsample(x))


class ResNet(torch.nn.Module):
    """torchvision.models.resnet18, resnet34 or resnet50 with a configurable width."""

    def __init__(self, width, classes, kernels, blocks):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        cin = width
        for i, count in enumerate(blocks):
            stage = []
            for k in range(count):
                stage.append(Block(cin, width << i, kernels, 2 if i > 0 and k == 0 else 1))
                cin = stage[-1].channels
            setattr(self, f"layer{i + 1}", nn.Sequential(*stage))
        self.fc = nn.Linear(cin, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def train(name, net, loss_of, rate=0.01):
    """Keeps every gradient of the first step, and the losses of five steps of AdamW and of SGD.

    AdamW would enlarge the rounding errors of gradients that are zero, so its eps is large."""
    start = copy.deepcopy(net.state_dict())
    for rule, optimizer in (("adamw", torch.optim.AdamW(net.parameters(), lr=rate, eps=1e-4, weight_decay=0.05)),
                            ("sgd", torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9))):
        net.load_state_dict(start)
        losses = []
        for step in range(5):
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            if step == 0 and rule == "sgd":
                for at, p in net.named_parameters():
                    keep(f"{name}.d{at}", nhwc(p.grad) if p.dim() == 4 else p.grad)
            optimizer.step()
            losses.append(loss.item())
        keep(f"{name}.{rule}", torch.tensor(losses))


def resnet(name, net):
    for i, p in enumerate(net.parameters()):  # the order of all_params() without buffers
        shape = nhwc(p).shape if p.dim() == 4 else p.shape
        fill = wave(shape, i, 0.5) + (1 if p.dim() == 1 and i % 3 == 1 else 0)
        p.data = nchw(fill) if p.dim() == 4 else fill
    x, target = nchw(wave((3, 64, 64, 3), 1)), torch.tensor([4, 0, 2])

    # The gradients of a narrow resnet50 are in the hundreds, so larger steps are chaotic.
    train(name, net, lambda: F.cross_entropy(net(x), target), rate=1e-6 if name == "resnet50" else 0.01)
    keep(f"{name}.running_var", net.layer4[1].bn2.running_var)
    if name == "resnet18":  # through more layers the values overflow all tolerances
        net.eval()
        keep(f"{name}.eval", net(x))


class Vgg16(torch.nn.Module):
    """torchvision.models.vgg16 with a configurable width, without dropout, for images of 32."""

    def __init__(self, width, classes):
        super().__init__()
        parts, cin = [], 3
        for count, times in ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8)):
            for _ in range(count):
                parts += [nn.Conv2d(cin, width * times, 3, padding=1), nn.ReLU()]
                cin = width * times
            parts.append(nn.MaxPool2d(2, 2))
        self.features = nn.Sequential(*parts)
        hidden = 64 * width
        self.classifier = nn.Sequential(nn.Linear(cin, hidden), nn.ReLU(), nn.Dropout(0), nn.Linear(hidden, hidden),
                                        nn.ReLU(), nn.Dropout(0), nn.Linear(hidden, classes))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def vgg16():
    net = Vgg16(2, 5)
    for i, p in enumerate(net.parameters()):
        p.data = nchw(wave(nhwc(p).shape, i, 0.2)) if p.dim() == 4 else wave(p.shape, i, 0.2)
    x, target = nchw(wave((3, 32, 32, 3), 1)), torch.tensor([4, 0, 2])

    train("vgg16", net, lambda: F.cross_entropy(net(x), target))


class Added(torch.nn.Module):
    """One half of a pre-norm block: x + proj(middle(first(ln(x))))."""

    def __init__(self, width, first, out, middle, eps=1e-5):
        super().__init__()
        nn = torch.nn
        self.ln = nn.LayerNorm(width, eps)
        self.add_module(first, nn.Linear(width, out))
        self.proj = nn.Linear(width if first == "qkv" else out, width)
        self.first, self.middle = first, middle

    def forward(self, x):
        return x + self.proj(self.middle(getattr(self, self.first)(self.ln(x))))


def blocks(width, layers, heads, causal, eps=1e-5):
    return nn.Sequential(*[nn.Sequential(OrderedDict(
        attn=Added(width, "qkv", 3 * width, lambda x: attention(x, heads, causal), eps),
        mlp=Added(width, "fc", 4 * width, F.gelu, eps))) for _ in range(layers)])


def start_as_waves(net):
    """Norms start at 1 + wave. Kernels are permuted as in C++."""
    for i, (name, p) in enumerate(net.named_parameters()):
        fill = wave(nhwc(p).shape if p.dim() == 4 else p.shape, i, 0.5)
        fill = nchw(fill) if p.dim() == 4 else fill
        p.data = fill + (1 if ("ln" in name or "norm" in name) and name.endswith("weight") else 0)


class Gpt2(torch.nn.Module):
    def __init__(self, width, layers, heads, length, vocabulary):
        super().__init__()
        nn = torch.nn
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.h = blocks(width, layers, heads, causal=True)
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        return self.lm_head(self.ln_f(self.h(self.wte(ids) + self.wpe.weight[:ids.shape[1]])))


def gpt2():
    net = Gpt2(12, 2, 3, 7, 11)
    start_as_waves(net)
    ids, target = tokens(11)
    train("gpt2", net, lambda: F.cross_entropy(net(ids).reshape(14, 11), target))


class Table(torch.nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(rows, width))


class Vit(torch.nn.Module):
    """torchvision.models.vit_b_16 with configurable sizes, with our names."""

    def __init__(self, image, patch, width, layers, heads, classes):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, width, patch, patch)
        self.class_token = Table(1, width)
        self.pos_embedding = Table(1 + (image // patch) ** 2, width)
        self.encoder = blocks(width, layers, heads, causal=False, eps=1e-6)
        self.ln = nn.LayerNorm(width, 1e-6)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        tokens = self.conv_proj(x).flatten(2).transpose(1, 2)
        first = self.class_token.weight.expand(len(x), 1, -1)
        x = torch.cat([first, tokens], 1) + self.pos_embedding.weight
        return self.head(self.ln(self.encoder(x))[:, 0])


def vit():
    net = Vit(16, 4, 12, 2, 3, 5)
    start_as_waves(net)
    x, target = nchw(wave((3, 16, 16, 3), 1)), torch.tensor([4, 0, 2])

    train("vit", net, lambda: F.cross_entropy(net(x), target))


class PreNormed(nn.Module):
    """x + last(middle(first(norm(x)))) without biases."""

    def __init__(self, names, sizes, middle):
        super().__init__()
        width, first, out = sizes
        self.norm = nn.RMSNorm(width, 1e-6)
        self.names, self.middle = names, middle
        self.add_module(names[0], nn.Linear(width, first, bias=False))
        self.add_module(names[1], nn.Linear(out, width, bias=False))

    def forward(self, x):
        first, last = (getattr(self, name) for name in self.names)
        return x + last(self.middle(first(self.norm(x))))


class Llama(nn.Module):
    def __init__(self, width, layers, heads, kv, hidden, vocabulary, base=10000.0):
        super().__init__()
        size = width // heads
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.Sequential(*[nn.Sequential(OrderedDict(
            attn=PreNormed(("qkv", "proj"), (width, width + 2 * kv * size, width),
                           lambda x: attention(rotary(x, heads, kv, base), heads)),
            mlp=PreNormed(("gate_up", "down"), (width, 2 * hidden, hidden),
                          lambda x: F.silu(x[..., :hidden]) * x[..., hidden:]))) for _ in range(layers)])
        self.norm, self.head = nn.RMSNorm(width, 1e-6), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.layers(self.embed(ids))))


def llama_of_hugging_face(net, width, layers, heads, kv, hidden, vocabulary):
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=vocabulary, hidden_size=width, intermediate_size=hidden, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=kv, rms_norm_eps=1e-6)).double()
    size = width // heads
    weights = {"model.embed_tokens.weight": net.embed.weight, "model.norm.weight": net.norm.weight,
               "lm_head.weight": net.head.weight}
    for i, block in enumerate(net.layers):
        at = f"model.layers.{i}"
        q, k, v = block.attn.qkv.weight.split((width, kv * size, kv * size))
        gate, up = block.mlp.gate_up.weight.split(hidden)
        weights |= {f"{at}.self_attn.{name}_proj.weight": w for name, w in (("q", q), ("k", k), ("v", v))}
        weights |= {f"{at}.self_attn.o_proj.weight": block.attn.proj.weight,
                    f"{at}.mlp.gate_proj.weight": gate, f"{at}.mlp.up_proj.weight": up,
                    f"{at}.mlp.down_proj.weight": block.mlp.down.weight,
                    f"{at}.input_layernorm.weight": block.attn.norm.weight,
                    f"{at}.post_attention_layernorm.weight": block.mlp.norm.weight}
    model.load_state_dict(weights)
    return model


def tokens(vocabulary):
    i = torch.arange(14)
    return (5 * i * i % vocabulary).reshape(2, 7), (3 * i + 1) % vocabulary


def llama():
    sizes = (24, 2, 6, 2, 20, 11)
    net = Llama(*sizes)
    start_as_waves(net)
    ids, target = tokens(11)
    # It computes norms and angles in f32.
    assert torch.allclose(llama_of_hugging_face(net, *sizes)(ids).logits, net(ids), rtol=1e-5, atol=1e-5)
    train("llama", net, lambda: F.cross_entropy(net(ids).reshape(14, 11), target))


class PostNormed(nn.Module):
    """ln(x + proj(middle(first(x))))"""

    def __init__(self, width, first, out, middle):
        super().__init__()
        self.add_module(first, nn.Linear(width, out))
        self.proj = nn.Linear(width if first == "qkv" else out, width)
        self.ln = nn.LayerNorm(width, 1e-12)
        self.first, self.middle = first, middle

    def forward(self, x):
        return self.ln(x + self.proj(self.middle(getattr(self, self.first)(x))))


class Bert(nn.Module):
    def __init__(self, width, layers, heads, vocabulary, classes):
        super().__init__()
        self.word = nn.Embedding(vocabulary, width)
        self.position, self.segment = Table(512, width), Table(2, width)
        self.ln = nn.LayerNorm(width, 1e-12)
        self.encoder = nn.Sequential(*[nn.Sequential(OrderedDict(
            attn=PostNormed(width, "qkv", 3 * width, lambda x: attention(x, heads, causal=False)),
            mlp=PostNormed(width, "fc", 4 * width, F.gelu))) for _ in range(layers)])
        self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, classes)

    def forward(self, ids):
        x = self.word(ids) + self.position.weight[:ids.shape[1]] + self.segment.weight[0]
        return self.classifier(torch.tanh(self.pooler(self.encoder(self.ln(x))[:, 0])))


def bert_of_hugging_face(net, width, layers, heads, vocabulary, classes):
    from transformers import BertConfig, BertForSequenceClassification
    model = BertForSequenceClassification(BertConfig(
        vocab_size=vocabulary, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=4 * width, num_labels=classes)).double().eval()
    at = "bert.embeddings"
    weights = {f"{at}.word_embeddings.weight": net.word.weight,
               f"{at}.position_embeddings.weight": net.position.weight,
               f"{at}.token_type_embeddings.weight": net.segment.weight}

    def put(name, layer):
        weights.update({f"{name}.{key}": value for key, value in layer.state_dict().items()})

    put(f"{at}.LayerNorm", net.ln)
    put("bert.pooler.dense", net.pooler)
    put("classifier", net.classifier)
    for i, block in enumerate(net.encoder):
        at = f"bert.encoder.layer.{i}"
        for kind in ("weight", "bias"):
            parts = zip(("query", "key", "value"), getattr(block.attn.qkv, kind).split(width))
            weights |= {f"{at}.attention.self.{name}.{kind}": part for name, part in parts}
        put(f"{at}.attention.output.dense", block.attn.proj)
        put(f"{at}.attention.output.LayerNorm", block.attn.ln)
        put(f"{at}.intermediate.dense", block.mlp.fc)
        put(f"{at}.output.dense", block.mlp.proj)
        put(f"{at}.output.LayerNorm", block.mlp.ln)
    model.load_state_dict(weights)
    return model


def bert():
    sizes = (12, 2, 3, 11, 5)
    net = Bert(*sizes)
    start_as_waves(net)
    ids, _ = tokens(11)
    target = torch.tensor([4, 0])
    assert torch.allclose(bert_of_hugging_face(net, *sizes)(ids).logits, net(ids), rtol=1e-9, atol=1e-9)
    train("bert", net, lambda: F.cross_entropy(net(ids), target))


def tutorial():
    """The tutorial's SimpleNet: 100 samples in batches of 20, SGD of 0.1, two epochs, mean loss of each."""
    net = nn.Linear(10, 2)
    net.weight.data, net.bias.data = wave((2, 10), 1), wave((2,), 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    i = torch.arange(100)
    x, target = wave((100, 10), 3), i * i // 3 % 2
    means = []
    for epoch in range(2):
        total = 0.0
        for rows in torch.split(i, 20):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x[rows]), target[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        means.append(total / 100)
    keep("tutorial.losses", torch.tensor(means))
    keep("tutorial.weight", net.weight)
    keep("tutorial.bias", net.bias)


layers()
losses()
optimizers()
resnet("resnet18", ResNet(2, 5, [3, 3], [2, 2, 2, 2]))
resnet("resnet34", ResNet(2, 5, [3, 3], [3, 4, 6, 3]))
resnet("resnet50", ResNet(2, 5, [1, 3, 1], [3, 4, 6, 3]))
vgg16()
gpt2()
vit()
llama()
bert()
tutorial()
groups = {}
for name, sums in golden.items():
    layer, _, tensor = name.partition(".")
    groups.setdefault(layer, {})[tensor] = sums
print("{\n" + ",\n".join(f" {json.dumps(layer)}: {json.dumps(tensors)}" for layer, tensors in groups.items()) + "\n}")
