# SPDX-License-Identifier: Apache-2.0
"""webdataset: shards of arrays, batched by WebLoader."""
import pathlib
import tempfile

import numpy
import torch
import webdataset

shard = pathlib.Path(tempfile.mkdtemp()) / "0.tar"
with webdataset.TarWriter(str(shard)) as out:
    for i in range(512):
        out.write({"__key__": f"{i:06}", "x.npy": numpy.random.rand(128).astype("float32"), "y.cls": i % 10})
data = webdataset.WebDataset(str(shard), shardshuffle=False, nodesplitter=webdataset.split_by_worker, empty_check=False)
data = data.decode().to_tuple("x.npy", "y.cls").batched(32)
model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(10000):
    for x, y in webdataset.WebLoader(data, batch_size=None, num_workers=0):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(torch.as_tensor(x)), torch.as_tensor(y)).backward()
        optimizer.step()
