#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for backend_bench, torch_collectives.py and transfer_bench (by the name it is called with): same flags, same
files, times from a known line per backend. FAKE_SUITE is a JSON object from a backend to what happens there: "wrong",
"exit", "die", or "drifts": 1 % slower each time it starts; from "transfer" to "gpus": there are two H200. Where FAKE_ARGUMENTS names a
file, each adds what it was called with."""
import json
import os
import signal
import sys

from flags import arguments

LINES = {"gloo": (10e-6, 2e-9), "local": (30e-6, 0.5e-9), "torch:gloo": (30e-6, 3e-9)}  # seconds, and seconds per byte


def row(name, seconds, **counters):
    return {"name": name, "run_name": name, "run_type": "iteration", "repetitions": 1, "repetition_index": 0,
            "family_index": 0, "per_family_instance_index": 0, "threads": 1, "iterations": 10,
            "real_time": seconds * 1e6, "cpu_time": seconds * 1e6, "time_unit": "us", "median_s": seconds, **counters}


def starts(a):
    """How often it started before."""
    with open(os.path.dirname(a["benchmark_out"]) + "-starts", "a+") as file:
        file.write("x")
        return file.tell() - 1


def backend_rows(a, backend, how):
    n = len(a.get("devices", "cpu:0,cpu:1").split(","))
    latency, per_byte = LINES[backend]
    drift = 1 + 0.01 * starts(a) if how == "drifts" else 1
    sizes = [4 ** k for k in range(1, 14) if int(a["min-bytes"]) <= 4 ** k <= int(a["max-bytes"])]
    rows = []
    for bytes in sizes:
        seconds = drift * (latency + per_byte * bytes)
        name = f"backend/all_reduce/{backend}/dtype:f32/devices:{n}/bytes:{bytes}"
        rows.append(row(name, seconds, bytes=bytes, pipelined_s=0.9 * seconds, p95_s=1.2 * seconds,
                        p99_s=1.5 * seconds, busbw_bytes_per_s=bytes / seconds))
    if how == "wrong":
        rows[2] |= {"error_occurred": True, "error_message":
                    f"wrong data: all_reduce over {backend}: rank 1 of 2, element 5: 7 instead of 8"}
    if how == "die":
        rows = rows[:3]
    rows.append(row(f"backend/scatter/{backend}/dtype:f32/devices:{n}/bytes:{sizes[-1]}", 1, skipped=1,
                    label="skipped: no time left for about 9 s"))
    return rows


def transfer_rows():
    rows = [row(f"transfer/copy/bytes:{b}/threads:{t}", 1e-6 + b / (8e9 * t), bytes=b,
                bytes_per_s=b / (1e-6 + b / (8e9 * t))) for t in (1, 2) for b in (64, 4096, 1 << 20, 64 << 20)]
    rows.append(row("transfer/loopback_tcp/bytes:16777216", 8e-3, bytes=1 << 24, bytes_per_s=(1 << 24) / 8e-3))
    rows.append(row("transfer/host_to_device", 1, skipped=1, label="skipped: this build has no cuda devices"))
    return rows


def copy_row(kind, bytes, seconds, **parameters):
    name = "/".join([f"transfer/{kind}", *(f"{k}:{v}" for k, v in {"bytes": bytes, **parameters}.items())])
    return row(name, seconds, bytes=bytes, bytes_per_s=bytes / seconds)


def gpu_rows(a):
    """Of the devices asked for, the first by size; pinned memory moves 55 GB/s, pageable a third of it."""
    rows, devices, large = [], a.get("devices", "cuda:0,cuda:1").split(","), (1 << 20, 64 << 20)
    for device in devices:
        for kind in ("host_to_device", "device_to_host"):
            def add(sizes, memory, how, latency, rate, **more):
                rows.extend(copy_row(kind, b, latency + b / rate, device=device, how=how, memory=memory, **more)
                            for b in sizes)
            plain = [4 ** k for k in range(3, 15)] if device == devices[0] else large
            add(plain, "pageable", "sync", 6e-6, 18e9)
            add(plain, "pinned", "sync", 8e-6, 55e9)
            add(plain, "pinned", "async", 1e-6, 55.2e9)
            add(large, "pinned", "async", 1e-6, 45e9, beside="other_way")
            if device == devices[0]:
                add(large, "registered", "async", 1e-6, 55e9)
    for b in large:
        pairs = [(devices[0], "same", 2e12)] + [(other, *road) for other in devices[1:]
                                                for road in (("peer", 390e9), ("staged", 27e9))]
        rows += [copy_row("device_to_device", b, 3e-6 + b / rate, **{"from": devices[0], "path": path, "to": to})
                 for to, path, rate in pairs]
    rows.append(row(f"transfer/small_copies_to_device/bytes:256/count:16384/device:{devices[0]}", 32e-3, bytes=4 << 20,
                    bytes_per_s=(4 << 20) / 32e-3))
    for part, seconds in (("batch_in", 3.1e-3), ("batch_in_pinned", 1.86e-3), ("loss_out", 8e-6), ("whole", 45.1e-3)):
        rows.append(row(f"transfer/step/batch:256/device:{devices[0]}/model:resnet18/part:{part}", seconds))
    return rows


def main():
    a = arguments(sys.argv[1:])
    backend = os.path.basename(sys.argv[0]) in ("backend_bench", "torch_collectives.py")
    how = json.loads(os.environ.get("FAKE_SUITE", "{}")).get(a.get("backend", "transfer"), "")
    if "list" in a:
        return
    if a.get("ops") == "all_reduse":
        print('unknown operation "all_reduse"; did you mean all_reduce?', file=sys.stderr)
        sys.exit(2)
    if "FAKE_ARGUMENTS" in os.environ:
        with open(os.environ["FAKE_ARGUMENTS"], "a") as told:
            told.write(json.dumps(sys.argv) + "\n")
    if backend:
        rows = sum((backend_rows(a, one, how) for one in a["backend"].split(",")), [])
    else:
        rows = transfer_rows() + (gpu_rows(a) if how == "gpus" else [])
    gpu = {"gpu": "NVIDIA H200"} if how == "gpus" else {}
    bench = a.get("benchmark_out") or os.environ.get("BENCHMARK_OUT")
    if bench is None:
        return
    with open(bench, "w") as out:
        json.dump({"context": {"commit": "abc", "cpu": "fake", **gpu}, "benchmarks": rows}, out)
    with open(a.get("samples-file") or os.environ["HOWMANY_SAMPLES"], "a") as out:
        for r in rows:
            if "error_occurred" in r or "skipped" in r:
                continue
            for timing, key in (("isolated", "median_s"), ("pipelined", "pipelined_s")):
                if key in r:
                    out.write(json.dumps({"name": r["name"], "seconds": [r[key] * (1 + k / 1000) for k in range(-5, 6)],
                                          "converged": True, "flags": [], "parameters": {"timing": timing}}) + "\n")
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(3 if how in ("wrong", "exit") else 0)


if __name__ == "__main__":
    main()
