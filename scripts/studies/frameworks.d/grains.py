# SPDX-License-Identifier: Apache-2.0
"""Grain: a MapDataset that yields batches of arrays, with no DataLoader of torch."""
import grain.python as grain
import numpy
import torch

data = grain.MapDataset.range(512).map(lambda i: (numpy.full(128, i % 7, "float32"), i % 10)).batch(32).repeat()
model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.Adam(model.parameters())
for x, y in data:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(y)).backward()
    optimizer.step()
