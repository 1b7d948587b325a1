# SPDX-License-Identifier: Apache-2.0
"""MosaicML Streaming: a StreamingDataset and its StreamingDataLoader."""
import tempfile

import numpy
import streaming
import torch

folder = tempfile.mkdtemp()
with streaming.MDSWriter(out=folder, columns={"x": "ndarray", "y": "int"}) as out:
    for i in range(512):
        out.write({"x": numpy.random.rand(128).astype("float32"), "y": i % 10})
data = streaming.StreamingDataset(local=folder, batch_size=32, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(10000):
    for batch in streaming.StreamingDataLoader(data, batch_size=32):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(batch["x"]), batch["y"]).backward()
        optimizer.step()
