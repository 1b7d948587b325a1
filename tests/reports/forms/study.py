# SPDX-License-Identifier: Apache-2.0
"""The summary of a scaling study, as `howmany gpus` writes it."""

GPU = "NVIDIA A100-SXM4-40GB"


def metric(value, low=None, high=None, unit="s"):
    return {"value": value, "unit": unit, "low": low, "high": high, "n": 3, "basis": "rounds"}


def measurement(devices, rate, efficiency, nodes=None, kind="cuda", scaling="strong", width=0.01, **metrics):
    """One row. `width` is that of the interval of the efficiency, relative to one side."""
    first = devices == 1
    low_high = (None, None) if first else (efficiency * (1 - width), efficiency * (1 + width))
    return {
        "suite": "speedup", "case": "ddp/net",
        "parameters": {"mode": "single" if first else "ddp", "model": "net", "backend": "local" if first else "nccl",
                       "devices": str(devices), "device_list": ",".join(f"{kind}:{i}" for i in range(min(devices, 4))),
                       "global_batch": "64", "cores_per_device": "1", "scaling": scaling}
        | ({"nodes": str(nodes)} if nodes else {}),
        "metrics": {"samples_per_s": metric(rate, unit="1/s"), "median_s": metric(64 / rate),
                    "efficiency": metric(efficiency, *low_high, "ratio"),
                    "speedup": metric(efficiency * devices, unit="ratio")}
        | {name: value if isinstance(value, dict) else metric(value) for name, value in metrics.items()},
        "flags": []}


def summary(measurements, kind="cuda", beyond=None):
    devices = [f"{kind}:{i}" for i in range(4)]
    return {
        "schema": "howmany.summary/1",
        "context": {"cpu": "EPYC", "howmany_version": "0.4.0", "howmany_date": "2026-11-29T00:00:00Z",
                    "howmany_request": {
                        "backend": ["nccl"], "cores-per-device": 1, "counts": [1, 2, 4], "data": "", "devices": devices,
                        "kernels": "", "mode": ["single", "ddp"], "on-bad-image": "", "oversubscribe": False,
                        "rounds": 3, "run-seconds": 3.0, "scaling": "strong", "seed": 1, "sync-batchnorm": False, "profile": False, "time-budget": 0.0,
                        "workers": -1, "workloads": [{"batch": 64, "model": "net"}]}}
        | ({"gpu": GPU} if kind == "cuda" else {}),
        "answer": {"gpus": {"min_efficiency": 0.8, "samples_to_train": 3.6e6}} | ({"beyond": beyond} if beyond else {}),
        "measurements": measurements}


def over_nodes(**changes):
    """1, 2 and 4 nodes of four GPUs. Each run trained 500,000 samples; 600 s on one node."""
    def run(wall, start):
        return {"wall_s": metric(wall, wall * 0.98, wall * 1.02), "start_s": metric(start)}
    rows = [measurement(4, 1000, 0.95, 1, gpu_utilisation_fraction=metric(0.93, unit="ratio"),
                        gpu_memory_bytes=metric(30e9, unit="bytes"), **run(600, 100)),
            measurement(8, 1960, 0.93, 2, **run(355.1, 100)),
            measurement(16, 3600, 0.90, 4, **run(238.9, 100))]
    return summary(rows, **changes)


def one_node(kind="cpu", **changes):
    return summary([measurement(1, 100, 1, kind=kind), measurement(2, 190, 0.95, kind=kind),
                    measurement(4, 280, 0.70, kind=kind)], kind, **changes)


def row(devices, rate, efficiency):
    return {"devices": devices, "samples_per_s": rate, "low": rate * 0.9, "high": rate * 1.1,
            "efficiency": efficiency, "efficiency_low": efficiency * 0.9, "efficiency_high": efficiency * 1.1}


def predictions(*rows, measured=((4, 1000), (8, 1960), (16, 3600))):
    return {"what": "net", "cluster": "", "noun": "GPU", "because": "Ask for 16 GPUs.",
            "notes": ["The loss grows as on published curves."], "devices_per_node": 4, "min_efficiency": 0.8,
            "samples": None, "recommended": 16, "computed": False, "basis": "", "scaling": "strong", "spread": 0,
            "measured": [{"devices": n, "samples_per_s": rate, "efficiency": 1.0} for n, rate in measured],
            "rehearsed": [], "predicted": list(rows)}
