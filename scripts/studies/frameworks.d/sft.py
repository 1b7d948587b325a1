# SPDX-License-Identifier: Apache-2.0
"""TRL's SFTTrainer with a small GPT-2 and token ids."""
import tempfile

import datasets
import torch
import transformers
import trl

tokens = datasets.Dataset.from_dict({"input_ids": torch.randint(0, 256, (512, 64)).tolist()})
model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=2, n_head=2, n_embd=64, vocab_size=256, n_positions=64))
words = {chr(i): i for i in range(256)}
with tempfile.TemporaryDirectory() as folder:
    from tokenizers import Tokenizer, models

    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="a")), pad_token="b", eos_token="c")
    arguments = trl.SFTConfig(folder, per_device_train_batch_size=8, num_train_epochs=1000, report_to=[], use_cpu=True, bf16=False,
                              save_strategy="no", disable_tqdm=True, dataset_kwargs={"skip_prepare_dataset": True})
    trl.SFTTrainer(model, args=arguments, train_dataset=tokens, processing_class=tokenizer).train()
