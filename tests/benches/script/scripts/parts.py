# SPDX-License-Identifier: Apache-2.0
"""A small model and data set of the scripts."""

import torch
from torch.utils.data import TensorDataset

BATCH = 16


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))


def data(samples=BATCH * 400):
    return TensorDataset(torch.randn(samples, 64), torch.randint(0, 10, (samples,)))


def loss_of(output, labels):
    return torch.nn.functional.cross_entropy(output, labels)
