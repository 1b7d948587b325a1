# SPDX-License-Identifier: Apache-2.0
"""Steps under PyTorch's own MemTracker, which prints the peak in bytes: tracked.py plain|wide|adam."""
import sys

import parts
import torch
from torch.distributed._tools.mem_tracker import MemTracker

KIND = sys.argv[1]
own = len(sys.argv) > 2  # under MemTracker
net = parts.model()
if KIND == "wide":  # activations are most of it
    net = torch.nn.Sequential(*[layer for _ in range(20) for layer in (torch.nn.Linear(256, 256), torch.nn.GELU())])
optimizer = (torch.optim.Adam if KIND == "adam" else torch.optim.SGD)(net.parameters(), lr=0.001)
x = torch.randn(2048, parts.FEATURES)


def step():
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()


if not own:
    while True:
        step()
step()
tracker = MemTracker()
tracker.track_external(net, optimizer, x)
with tracker:
    for _ in range(2):
        step()
        tracker.reset_mod_stats()  # it refuses a second step without this
print(max(snapshot["Total"] for snapshot in tracker.get_tracker_snapshot("peak").values()))
