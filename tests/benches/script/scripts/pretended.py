# SPDX-License-Identifier: Apache-2.0
"""pretended.py KIND: trains on a GPU that is not here, as users' scripts do. Asserts what such a script sees."""

import copy
import os
import sys
import tempfile

import torch
from torch.nn.functional import cross_entropy, ctc_loss, scaled_dot_product_attention
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, TensorDataset

BATCH, WIDTH, HIDDEN, CLASSES = 32, 128, 512, 10


def layers(hidden=HIDDEN):
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, CLASSES))


def batches():
    samples = TensorDataset(torch.randn(1024, WIDTH), torch.randint(0, CLASSES, (1024,)))
    while True:
        yield from DataLoader(samples, BATCH, shuffle=True, num_workers=2, pin_memory=True)


def mixed():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert (torch.cuda.device_count(), torch.cuda.get_device_name()) == (1, "NVIDIA A100")
    assert torch.cuda.is_bf16_supported() and torch.cuda.get_device_capability() == (8, 0)
    model = layers().to(device)
    model[0].weight.data.clamp_(-1, 1)
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cuda")
    for x, y in batches():
        assert x.device.type == "cpu" and x.sum().item() != 0  # the loader's values are real
        x, y = x.cuda(non_blocking=True), y.to(device)
        assert x.is_cuda and x.device == torch.device("cuda:0") and x.get_device() == 0 and not x.is_meta
        with torch.autocast("cuda", dtype=torch.float16):
            output = model(x)
            assert output.dtype == torch.float16
            loss = cross_entropy(output, y)
        assert loss.dtype == torch.float32
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(f"{loss.item():.3f} {loss}", (output.argmax(1) == y).float().mean().cpu().numpy())


def values():
    """Values that follow from those of the CPU are known."""
    model, device = layers().cuda(), "cuda"
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in batches():
        lengths = torch.tensor([3, 1, 4], device=device)
        mask = torch.arange(4, device=device)[None, :] < lengths[:, None]
        assert lengths.max().item() == 4 and int(mask.sum()) == 8 and mask.nonzero().shape == (8, 2)
        assert torch.randn(3, 4, 5, device=device)[mask].shape == (8, 5)
        assert lengths.tolist() == [3, 1, 4] and torch.equal(lengths, lengths.clone())
        assert not torch.isnan(x.cuda().mean()).any()
        loss = cross_entropy(model(x.cuda()), y.cuda())
        assert torch.isfinite(loss)  # its value is not known
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def group(wrap):
    torch.distributed.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    assert torch.distributed.get_world_size() == 8
    torch.manual_seed(0)
    model = wrap(layers(2048).cuda())
    optimizer = torch.optim.AdamW(model.parameters())
    for x, y in batches():
        loss = cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.distributed.all_reduce(loss.detach())


def ddp():
    group(lambda model: torch.nn.parallel.DistributedDataParallel(model, device_ids=[0], bucket_cap_mb=1))


def fsdp():
    from torch.distributed.fsdp import fully_shard

    def wrap(model):
        for one in (model[0], model[2]):
            fully_shard(one)
        return fully_shard(model)

    group(wrap)


def large():
    """2.1 billion parameters, tied as in language models."""
    table = torch.nn.Embedding(32_000, 4096)
    blocks = [torch.nn.Linear(4096, 4096, bias=False) for _ in range(120)]
    model = torch.nn.Sequential(table, *blocks, torch.nn.Linear(4096, 32_000, bias=False))
    model[-1].weight = table.weight
    model.to("cuda")
    assert model[-1].weight is table.weight
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    while True:
        x = torch.randint(0, 32_000, (2, 64), device="cuda")
        model(x).float().logsumexp(-1).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def calls():
    """Other calls of scripts than those of their model."""
    device, model = torch.device("cuda"), layers().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    copied = copy.deepcopy(model)
    assert next(copied.parameters()).is_cuda and next(copied.parameters()) is not next(model.parameters())
    model.load_state_dict(model.state_dict())
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.state_dict(), f"{folder}/new.pt")
        os.replace(f"{folder}/new.pt", f"{folder}/last.pt")
    with torch.device("cuda"):
        assert torch.nn.Linear(2, 2).weight.is_cuda and torch.tensor([1.0]).is_cuda
    torch.randn(3, device=device, generator=torch.Generator(device="cuda").manual_seed(1))
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.randn(4, WIDTH).pin_memory().cuda(non_blocking=True)
        x.record_stream(torch.cuda.current_stream())
    assert torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).is_cuda
    scripted = torch.jit.script(torch.nn.Linear(WIDTH, 2).cuda())
    assert torch.compile(scripted)(x).shape == (4, 2)
    recurrent = torch.nn.LSTM(8, 16, 2, bidirectional=True, batch_first=True).cuda()
    packed = pack_padded_sequence(torch.randn(3, 5, 8, device=device), torch.tensor([5, 4, 3]), batch_first=True)
    assert pad_packed_sequence(recurrent(packed)[0], batch_first=True)[0].shape == (3, 5, 32)
    scores = torch.randn(20, 4, 10, device=device, requires_grad=True)
    targets, lengths = torch.randint(1, 10, (4, 5), device=device), torch.full((4,), 20)
    ctc_loss(scores.log_softmax(2), targets, lengths, torch.full((4,), 5)).backward()  # without a rule for shapes
    assert scores.grad.shape == scores.shape
    query = torch.randn(2, 4, 8, 16, device=device, dtype=torch.bfloat16)
    assert scaled_dot_product_attention(query, query[:, :2], query[:, :2], enable_gqa=True).shape == query.shape
    x[x > 0] = 0
    assert x[x > 0].dim() == 1 and x.cpu().numpy().shape == (4, WIDTH)
    for inputs, labels in batches():
        cross_entropy(model(inputs.cuda()), labels.cuda()).backward()
        optimizer.step()
        with torch.inference_mode():
            assert model(inputs.cuda()).to(torch.float16).mean().item() == 1  # made up
            assert model(inputs.cuda()).cpu().mean().item() == 1


def once():
    model = layers().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model(torch.randn(4, WIDTH, device="cuda")).sum().backward()
    optimizer.step()


def shapes():
    """The number of experts that are used depends on values."""
    model = layers().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in batches():
        output = model(x.cuda())
        used = torch.unique(output.argmax(1))
        (output[:, : len(used)].sum() + cross_entropy(output, y.cuda())).backward()
        optimizer.step()


globals()[sys.argv[1]]()
