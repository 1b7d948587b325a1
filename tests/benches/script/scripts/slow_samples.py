# SPDX-License-Identifier: Apache-2.0
"""A sample waits as if for a disk: without workers the loader takes three times as long as a step."""
import os
import time

import parts
import torch
from own_timer import tick


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return parts.BATCH * int(os.environ.get("BATCHES", "400"))

    def __getitem__(self, index):
        time.sleep(0.0005)
        return torch.full((parts.FEATURES,), index / len(self)), index % parts.CLASSES


if __name__ == "__main__":
    torch.set_num_threads(1)
    net = parts.model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(Slow(), batch_size=parts.BATCH, shuffle=True)
    for _ in range(1000):
        for x, y in loader:
            optimizer.zero_grad()
            parts.loss_of(net(x), y).backward()
            optimizer.step()
            tick()
