# SPDX-License-Identifier: Apache-2.0
"""An IterableDataset that yields dictionaries."""
import parts
import torch
from own_timer import tick


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        while True:
            yield {"label": torch.randint(0, parts.CLASSES, ()), "x": torch.randn(parts.FEATURES)}


net = parts.model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for batch in torch.utils.data.DataLoader(Stream(), batch_size=parts.BATCH):
    optimizer.zero_grad()
    parts.loss_of(net(batch["x"]), batch["label"]).backward()
    optimizer.step()
    tick()
