# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT-2 on random tokens with the Hugging Face Trainer, on all devices of the launch."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=4, n_embd=128, vocab_size=1000))
tokens = torch.randint(0, 1000, (2048, 64))
samples = [{"input_ids": row, "labels": row} for row in tokens]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, per_device_train_batch_size=8, num_train_epochs=20, report_to=[],
                                  save_strategy="no", use_cpu=not torch.cuda.is_available())
    Trainer(model, arguments, train_dataset=samples).train()
