# SPDX-License-Identifier: Apache-2.0
"""PyTorch Geometric: batches of graphs."""
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_add_pool


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = GINConv(torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64)))
        self.out = torch.nn.Linear(64, 2)

    def forward(self, x, edges, batch):
        return self.out(global_add_pool(self.convolution(x, edges), batch))


data = [Data(x=torch.randn(20, 16), edge_index=torch.randint(0, 20, (2, 60)), y=torch.tensor([i % 2])) for i in range(512)]
model = Net()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(10000):
    for graphs in DataLoader(data, batch_size=32):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(graphs.x, graphs.edge_index, graphs.batch), graphs.y).backward()
        optimizer.step()
