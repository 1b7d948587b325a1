# SPDX-License-Identifier: Apache-2.0
"""A cluster file of CPU devices: 4 a node, 1 GB/s within it, 4 Gbit/s between nodes."""

import statistics


def straggler_factor(beyond, devices):
    """The time of a step on these devices over that of one rank (reports/predict/replay.h)."""
    return 1 + beyond["spread"] * statistics.NormalDist().inv_cdf((devices - 0.375) / (devices + 0.25))


def cpu_cluster(latency_us, hop_us=10, name="ours", gbit_per_s=4):
    return f"""name = "{name}"
device = "cpu"
devices_per_node = 4
source = "a test"
[node]
busbw_gb_per_s = 1
latency_us = {latency_us}
[network]
links = 1
gbit_per_s = {gbit_per_s}
latency_us = {hop_us}
"""
