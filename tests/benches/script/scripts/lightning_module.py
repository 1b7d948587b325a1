# SPDX-License-Identifier: Apache-2.0
"""Lightning, with two micro-batches per step."""
import lightning
import parts
import torch


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = parts.model()

    def training_step(self, batch, index):
        x, y = batch
        return parts.loss_of(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


loader = torch.utils.data.DataLoader(parts.data(), batch_size=parts.BATCH)
lightning.Trainer(accelerator="cpu", max_epochs=1000, accumulate_grad_batches=2, logger=False,
                  enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False).fit(Net(), loader)
