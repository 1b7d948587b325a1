# SPDX-License-Identifier: Apache-2.0
"""Lightning Fabric, started by `fabric run`: it does not call launch()."""
import lightning
import torch

fabric = lightning.Fabric(accelerator="cpu")
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.01))
data = torch.utils.data.TensorDataset(torch.randn(4096, 256))
loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(data, batch_size=64))
for _ in range(1000):
    for (x,) in loader:
        optimizer.zero_grad()
        fabric.backward(model(x).square().mean())
        optimizer.step()
