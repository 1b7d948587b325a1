# SPDX-License-Identifier: Apache-2.0
"""The tutorial's SimpleNet in PyTorch, with the data and initial parameters of examples/cpp/simple_net.cpp.
They come from howmany's generator, Philox4x32-10 (core/tensor/rng.h). cpp_test.py runs this."""
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

MASK = 2**32 - 1


def philox(counter, stream, seed):
    """Returns four 32-bit words."""
    c = [counter & MASK, counter >> 32, stream & MASK, stream >> 32]
    key = [seed & MASK, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ key[0], b & MASK, (a >> 32) ^ c[3] ^ key[1], a & MASK]
        key = [(key[0] + 0x9E3779B9) & MASK, (key[1] + 0xBB67AE85) & MASK]
    return c


def stream_of(name):
    """FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & (2**64 - 1)
    return value


def normals(count, seed):
    values = []
    for block in range((count + 3) // 4):
        words = philox(block, 0, seed)
        for a, b in (words[:2], words[2:]):
            radius, angle = math.sqrt(-2 * math.log((a + 0.5) / 2**32)), b * 2 * math.pi / 2**32
            values += [radius * math.cos(angle), radius * math.sin(angle)]
    return torch.tensor(values[:count])


def uniforms(count, bound, seed, stream):
    values = [2 * bound * word / 2**32 - bound for block in range((count + 3) // 4) for word in philox(block, stream, seed)]
    return torch.tensor(values[:count])


def below(count, bound, seed):
    words = [philox(i, 0, seed) for i in range(count)]
    return torch.tensor([int((((w[0] << 32) | w[1]) >> 11) * 2.0**-53 * bound) for w in words])


dataset = TensorDataset(normals(1000, 1).view(100, 10), below(100, 2, 2))
dataloader = DataLoader(dataset, batch_size=20)
model = nn.Linear(10, 2)
with torch.no_grad():
    bound = 1 / math.sqrt(10)
    model.weight.copy_(uniforms(20, bound, 1, stream_of("weight")).view(2, 10))
    model.bias.copy_(uniforms(2, bound, 1, stream_of("bias")))

criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    total_loss = 0
    for inputs, labels in dataloader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
    print(f"Epoch {epoch+1}, Loss: {total_loss/len(dataloader):.4f}")
