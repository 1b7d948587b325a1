# SPDX-License-Identifier: Apache-2.0
"""Shared by the comparisons: intervals of medians."""
import math


def of_median(values):
    """Returns the 95 % interval of the median by the sign test; (0, inf) if there are too few values."""
    n, k, tail = len(values), -1, 0
    while (tail := tail + math.comb(n, k + 1) / 2**n) <= 0.025:
        k += 1
    return (sorted(values)[k], sorted(values)[n - 1 - k]) if k >= 0 else (0, math.inf)
