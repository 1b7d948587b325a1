# SPDX-License-Identifier: Apache-2.0
"""A cluster file of CPU devices: 4 a node, 1 GB/s within it, 4 Gbit/s between nodes."""


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
