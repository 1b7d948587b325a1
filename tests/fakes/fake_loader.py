#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for loader_bench: each worker makes FAKE_RATE samples/s, FAKE_CORES cores at most. FAKE_FAIL is a JSON
object from "workers" (or "look", the first run) to what happens there: "exit", "die", "usage", "error", "garbage",
"listing", "memory", "bad files", "interrupt"
(of the program that started it)."""
import json
import os
import signal
import sys
import time

from flags import arguments

RATE = float(os.environ.get("FAKE_RATE", "500"))
CORES = float(os.environ.get("FAKE_CORES", "4"))


def limits():
    return {"cores": CORES, "cores_because": f"{CORES} cores: fake", "memory_bytes": 64e9,
            "memory_because": "MemAvailable", "shm_bytes": float(os.environ.get("FAKE_SHM", "32e9")),
            "descriptors": 1 << 20, "processes": None, "processes_because": "no limit"}


def row(name, **counters):
    return {"name": name, "run_name": name, "run_type": "iteration", "repetitions": 1, "repetition_index": 0,
            "threads": 1, "iterations": 10, "real_time": 1, "cpu_time": 1, "time_unit": "ms"} | counters


def run(a, workers):
    """The row and the seconds of a batch."""
    batch = int(a["batch-per-device"])
    rate = RATE * min(max(workers, 1), CORES)
    name = f"loader/painted/workers:{workers}/batch:{batch}/prefetch:{a['prefetch']}/as:threads"
    counters = {"samples_per_s": rate, "latency_p95_s": 0.01, "latency_p99_s": 0.02, "first_batch_s": 0.1,
                "bytes_per_worker": 1e7}
    if "samples-per-second" in a:
        demand = float(a["samples-per-second"])
        name += f"/demand:{demand:.4g}"
        stall = demand / (demand + rate) if workers == 0 else max(0, 1 - rate / demand)
        counters |= {"samples_per_s": min(rate, demand), "stall_fraction": stall}
    if a.get("cache") == "cold":
        name += "/cache:cold"
        counters["samples_per_s"] = rate / 2
    return row(name, **counters), [batch / rate * f for f in (0.99, 1, 1.01, 1)]


def fail(row, how):
    if how == "error":
        row |= {"error_occurred": True, "error_message": "sample 7 is gone"}
    if how == "memory":
        row |= {"error_occurred": True, "error_message": "[storage] out of memory for 315621376000 bytes"}


def misbehave(how):
    if how == "listing":
        print("photos: 5000000 files listed", file=sys.stderr, flush=True)
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        print("out of memory", file=sys.stderr)
        sys.exit(3)
    if how == "interrupt":
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(60)
    if how == "usage":
        print("[image_folder] /nowhere does not exist", file=sys.stderr)
        sys.exit(2)


def main():
    a = arguments(sys.argv[1:])
    what = "look" if a["case-budget"] == "0.100" else a["workers"]
    fails = json.loads(os.environ.get("FAKE_FAIL", "{}"))
    numbers = what.split(",")
    how = next((fails[n] for n in numbers if n in fails), "")
    if "FAKE_LOG" in os.environ and what != "look":
        with open(os.environ["FAKE_LOG"], "a") as log:
            log.write(json.dumps(a) + "\n")
    misbehave(how)
    told = [run(a, int(n)) for n in a["workers"].split(",")]
    for n, (r, _) in zip(numbers, told):
        fail(r, fails.get(n))
    with open(a["benchmark_out"], "w") as out:
        if how == "garbage":
            out.write('{"context": {}, "benchmarks": [')
            return
        bad = {"loader_files_used": "19", "loader_files_bad": "2", "loader_first_bad": "cat/7.jpg: empty",
               "loader_notes": "24 files of a format that is not read: .bmp"}
        json.dump({"context": {"commit": "abc", "loader_files": "1000", "loader_format": "image_folder",
                               "loader_sample_bytes": "602120",
                               "loader_limits": "garbage" if how == "limits" else json.dumps(limits()),
                               **(bad if how == "bad files" else {})},
                   "benchmarks": [r for r, _ in told]}, out)
    with open(a["samples-file"], "a") as out:
        for r, seconds in told:
            out.write(json.dumps({"name": r["name"], "seconds": seconds}) + "\n")


if __name__ == "__main__":
    main()
