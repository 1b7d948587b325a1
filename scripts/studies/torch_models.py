# SPDX-License-Identifier: Apache-2.0
"""The models of core/nn/models in PyTorch, and a training step."""


def residual_block(nn, inputs, outputs, stride):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU(inplace=True)
            self.downsample = None
            if stride != 1 or inputs != outputs:
                self.downsample = nn.Sequential(
                    nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            y = self.relu(self.bn1(self.conv1(x)))
            y = self.bn2(self.conv2(y))
            return self.relu(y + (x if self.downsample is None else self.downsample(x)))

    return Block()


def added(torch, width, first, out, middle, eps):
    nn = torch.nn

    class Added(nn.Module):
        """One half of a pre-norm block: x + proj(middle(first(ln(x))))."""

        def __init__(self):
            super().__init__()
            self.ln, self.first = nn.LayerNorm(width, eps), nn.Linear(width, first)
            self.proj = nn.Linear(out, width)

        def forward(self, x):
            return x + self.proj(middle(self.first(self.ln(x))))

    return Added()


def transformer_blocks(torch, width, layers, heads, causal, eps=1e-5):
    functional = torch.nn.functional

    def attention(qkv):
        n, times, _ = qkv.shape
        q, k, v = (t.view(n, times, heads, -1).transpose(1, 2) for t in qkv.split(width, -1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return y.transpose(1, 2).reshape(n, times, width)

    return [part for _ in range(layers)
            for part in (added(torch, width, 3 * width, width, attention, eps),
                         added(torch, width, 4 * width, 4 * width, functional.gelu, eps))]


GPT2_SIZES = {"small": (768, 12, 12), "medium": (1024, 24, 16), "large": (1280, 36, 20), "xl": (1600, 48, 25)}


def gpt2_model(torch, width=256, layers=4, heads=4, length=128, vocabulary=1000, size=None):
    """Has the defaults of core/nn/models/gpt2.cpp. The published sizes have tied weights."""
    nn = torch.nn
    if size:
        (width, layers, heads), vocabulary = GPT2_SIZES[size], 50257

    class Embeddings(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)

        def forward(self, ids):
            return self.wte(ids) + self.wpe.weight[:ids.shape[1]]

    blocks = transformer_blocks(torch, width, layers, heads, causal=True)
    embeddings, head = Embeddings(), nn.Linear(width, vocabulary, bias=False)
    if size:
        head.weight = embeddings.wte.weight
        torch.nn.init.normal_(head.weight, std=0.02)
    return nn.Sequential(embeddings, *blocks, nn.LayerNorm(width), head)


LLAMA_SIZES = {"160m": dict(width=768, layers=12, heads=12, hidden=3072, vocabulary=32000)}


def llama_model(torch, width=256, layers=4, heads=4, kv_heads=None, hidden=688, vocabulary=1000, length=128, size=None):
    """Has the defaults of core/nn/models/llama.cpp. Its layers are those of Hugging Face's Llama."""
    from transformers import LlamaConfig, LlamaForCausalLM
    if size:
        return llama_model(torch, length=length, **LLAMA_SIZES[size])

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = LlamaForCausalLM(LlamaConfig(
                vocab_size=vocabulary, hidden_size=width, intermediate_size=hidden, num_hidden_layers=layers,
                num_attention_heads=heads, num_key_value_heads=kv_heads or heads, max_position_embeddings=length))

        def forward(self, ids):
            return self.model(ids, use_cache=False).logits

    return Logits()


def bert_model(torch, width=768, layers=12, heads=12, vocabulary=30522, classes=2, length=128):
    """Has the defaults of core/nn/models/bert.cpp: Hugging Face's model without dropout."""
    from transformers import BertConfig, BertForSequenceClassification

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = BertForSequenceClassification(BertConfig(
                vocab_size=vocabulary, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
                intermediate_size=4 * width, num_labels=classes, hidden_dropout_prob=0, attention_probs_dropout_prob=0))

        def forward(self, ids):
            return self.model(ids).logits

    return Logits()


def vit_model(torch, width=768, layers=12, heads=12, patch=16, image=224):
    """Has the defaults of core/nn/models/vit.cpp."""
    nn = torch.nn

    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, width, patch, patch)
            self.first = nn.Parameter(torch.zeros(1, 1, width))
            self.place = nn.Parameter(torch.zeros(1, 1 + (image // patch) ** 2, width))

        def forward(self, x):
            x = self.conv(x).flatten(2).transpose(1, 2)
            return torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.place

    class First(nn.Module):
        def forward(self, x):
            return x[:, 0]

    blocks = transformer_blocks(torch, width, layers, heads, causal=False, eps=1e-6)
    return nn.Sequential(Tokens(), *blocks, nn.LayerNorm(width, 1e-6), First(), nn.Linear(width, 1000))


def options_of(name):
    """Parses gpt2:size=small,length=256 into size="small", length=256."""
    _, _, options = name.partition(":")
    pairs = (one.split("=") for one in options.split(",") if one)
    return {key: int(value) if value.isdigit() else value for key, value in pairs}


def torch_model(torch, name):
    nn = torch.nn
    if name.startswith("gpt2"):
        return gpt2_model(torch, **options_of(name))
    if name.startswith("vit_b_16"):
        return vit_model(torch, **options_of(name))
    if name.startswith("llama"):
        return llama_model(torch, **options_of(name))
    if name.startswith("bert_base"):
        return bert_model(torch, **options_of(name))
    if name.startswith("bert_large"):
        return bert_model(torch, **{"width": 1024, "layers": 24, "heads": 16, **options_of(name)})
    if name in ("resnet34", "resnet50", "vgg16"):
        import torchvision
        return getattr(torchvision.models, name)(weights=None)
    if name == "mlp":
        return nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
                             nn.Linear(4096, 1000))
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [residual_block(nn, inputs, outputs, stride),
                   residual_block(nn, outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class TorchStep:
    """One training step with SGD, momentum 0.9. how: eager, or the mode of torch.compile.

    With precision bf16, parameters stay f32 and autocast does the rest: it keeps layer norms and
    the sums between blocks in f32. f32 means without tf32. On a GPU it uses PyTorch's fast options:
    cudnn.benchmark and the fused optimizer."""

    def __init__(self, torch, name, batch, layout, device="cpu", precision="f32", how="eager"):
        self.functional = torch.nn.functional
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
        self.autocast = lambda: torch.autocast(torch.device(device).type, torch.bfloat16,
                                               enabled=precision == "bf16")
        shape = (batch, 1024) if name == "mlp" else (batch, 3, 224, 224)
        labels = torch.randint(0, 1000, (batch,))
        length = options_of(name).get("length", 128)
        if name.startswith(("gpt2", "llama")):
            x, labels = torch.randint(0, 1000, (2, batch, length))
        elif name.startswith("bert"):
            x, labels = torch.randint(0, 1000, (batch, length)), torch.randint(0, 2, (batch,))
        else:
            x = torch.randn(shape)
        self.model = torch_model(torch, name).to(device)
        self.x, self.labels = x.to(device), labels.to(device)
        if layout == "channels_last":
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = self.x.to(memory_format=torch.channels_last)
        on_gpu = torch.device(device).type == "cuda"
        torch.backends.cudnn.benchmark = on_gpu
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, fused=on_gpu or None)
        # Shapes of one model must not make those of the next one dynamic, and so slower.
        self.run = self.model if how == "eager" else torch.compile(self.model, mode=how, dynamic=False)

    def distribute(self, torch, how):
        if how == "ddp":
            self.run = self.model = torch.nn.parallel.DistributedDataParallel(self.model)
        else:
            self.shard(torch)
        return self

    def shard(self, torch):
        """FSDP2 with a unit for each child that has parameters, as mode `sharded` cuts models."""
        for child in self.model.children():
            if any(True for _ in child.parameters()):
                torch.distributed.fsdp.fully_shard(child)
        torch.distributed.fsdp.fully_shard(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)

    def __call__(self):
        self.optimizer.zero_grad()
        with self.autocast():
            y = self.run(self.x)
            loss = self.functional.cross_entropy(y.view(-1, y.shape[-1]), self.labels.view(-1))
        loss.backward()
        self.optimizer.step()
