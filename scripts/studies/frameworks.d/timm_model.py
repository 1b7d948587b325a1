# SPDX-License-Identifier: Apache-2.0
"""timm: forms its group as timm's own train.py does, only if there are several ranks."""
import timm
import timm.utils
import torch

args = type("Args", (), {"device": "cpu", "dist_backend": "gloo", "dist_url": None})()
device = timm.utils.init_distributed_device(args)
model = timm.create_model("resnet10t", num_classes=10).to(device)
if args.distributed:
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.utils.data.TensorDataset(torch.randn(256, 3, 64, 64), torch.randint(0, 10, (256,)))
for _ in range(1000):
    for x, y in torch.utils.data.DataLoader(data, batch_size=8):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
