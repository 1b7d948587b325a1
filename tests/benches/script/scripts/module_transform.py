# SPDX-License-Identifier: Apache-2.0
"""Samples are made by a module, as torchvision's transforms are, and workers are spawned."""
import multiprocessing

import parts
import torch
from own_timer import tick


class Transformed(torch.utils.data.Dataset):
    def __init__(self):
        self.transform = torch.nn.Sequential(torch.nn.Flatten(0), torch.nn.Tanh())

    def __len__(self):
        return parts.BATCH * 400

    def __getitem__(self, index):
        return self.transform(torch.full((1, parts.FEATURES), index / len(self))), index % parts.CLASSES


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    torch.set_num_threads(1)
    net = parts.model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(Transformed(), batch_size=parts.BATCH, shuffle=True)
    for _ in range(1000):
        for x, y in loader:
            optimizer.zero_grad()
            parts.loss_of(net(x), y).backward()
            optimizer.step()
            tick()
