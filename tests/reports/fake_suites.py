#!/usr/bin/env python3
"""Stands in for backend_bench and transfer_bench (by the name it is called with): same flags, same files, times from
a known line per backend. FAKE_SUITE is a JSON object from a backend to what happens there: "wrong", "exit", "die", or
"drifts": 1 % slower each time it starts."""
import json
import os
import signal
import sys

from flags import arguments

LINES = {"gloo": (10e-6, 2e-9), "local": (30e-6, 0.5e-9)}  # seconds, and seconds per byte


def row(name, seconds, **counters):
    return {"name": name, "run_name": name, "run_type": "iteration", "repetitions": 1, "repetition_index": 0,
            "family_index": 0, "per_family_instance_index": 0, "threads": 1, "iterations": 10,
            "real_time": seconds * 1e6, "cpu_time": seconds * 1e6, "time_unit": "us", "median_s": seconds, **counters}


def starts(a):
    """How often it started before."""
    with open(os.path.dirname(a["benchmark_out"]) + "-starts", "a+") as file:
        file.write("x")
        return file.tell() - 1


def backend_rows(a, how):
    backend, n = a["backend"], len(a["devices"].split(","))
    latency, per_byte = LINES[backend]
    drift = 1 + 0.01 * starts(a) if how == "drifts" else 1
    sizes = [4 ** k for k in range(1, 14) if int(a["min-bytes"]) <= 4 ** k <= int(a["max-bytes"])]
    rows = []
    for bytes in sizes:
        seconds = drift * (latency + per_byte * bytes)
        name = f"backend/all_reduce/{backend}/dtype:f32/devices:{n}/bytes:{bytes}"
        rows.append(row(name, seconds, bytes=bytes, pipelined_s=0.9 * seconds, busbw_bytes_per_s=bytes / seconds))
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


def main():
    a = arguments(sys.argv[1:])
    backend = "backend" in os.path.basename(sys.argv[0])
    how = json.loads(os.environ.get("FAKE_SUITE", "{}")).get(a.get("backend", "transfer"), "")
    if "list" in a:
        return
    if a.get("ops") == "all_reduse":
        print('unknown operation "all_reduse"; did you mean all_reduce?', file=sys.stderr)
        sys.exit(2)
    rows = backend_rows(a, how) if backend else transfer_rows()
    with open(a["benchmark_out"], "w") as out:
        json.dump({"context": {"commit": "abc", "cpu": "fake"}, "benchmarks": rows}, out)
    with open(a["samples"], "a") as out:
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
