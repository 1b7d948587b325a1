# SPDX-License-Identifier: Apache-2.0
"""The columns of rows.csv that decide the count of a step."""

KEY = ("model", "batch", "length", "precision", "channels_last", "compiled", "attention", "optimizer", "accumulation")


def key_of(row):
    return "|".join(row[name] for name in KEY)
