# SPDX-License-Identifier: Apache-2.0
"""ZeRO by DeepSpeed. There are two groups of parameters, and the optimizer steps once for each."""
import os

import deepspeed
import parts
import torch
from own_timer import tick

net = parts.model()
weights = [p for p in net.parameters() if p.dim() > 1]
biases = [p for p in net.parameters() if p.dim() == 1]
engine, _, loader, _ = deepspeed.initialize(
    model=net, optimizer=torch.optim.SGD([{"params": weights}, {"params": biases}], lr=0.01), training_data=parts.data(),
    config={"train_micro_batch_size_per_gpu": parts.BATCH, "zero_optimization": {"stage": int(os.environ.get("STAGE", "1"))},
            "zero_allow_untested_optimizer": True, "steps_per_print": 1 << 30})
for _ in range(1000):
    for x, y in loader:
        engine.backward(parts.loss_of(engine(x), y))
        engine.step()
        tick()
