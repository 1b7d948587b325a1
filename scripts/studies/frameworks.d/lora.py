# SPDX-License-Identifier: Apache-2.0
"""transformers' Trainer with a small GPT-2 and LoRA by PEFT."""
import tempfile

import peft
import torch
import transformers

config = transformers.GPT2Config(n_layer=2, n_head=2, n_embd=64, vocab_size=256, n_positions=64)
model = peft.get_peft_model(transformers.GPT2LMHeadModel(config), peft.LoraConfig(target_modules=["c_attn"], fan_in_fan_out=True))
tokens = [{"input_ids": t, "labels": t} for t in torch.randint(0, 256, (512, 64))]
with tempfile.TemporaryDirectory() as folder:
    arguments = transformers.TrainingArguments(folder, per_device_train_batch_size=8, num_train_epochs=1000, report_to=[],
                                               use_cpu=True, save_strategy="no", disable_tqdm=True)
    transformers.Trainer(model, arguments, train_dataset=tokens).train()
