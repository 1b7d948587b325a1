#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for a Google Benchmark program: takes its flags, writes its JSON, "measures" what FAKE_TIMES says, a JSON
object from benchmark to seconds, with a noise of 1 %. FAKE_HOW: "exit", "garbage", "error", "hang", "old" (before 1.6),
"new" (1.8 and later), "never" (starts only once, see FAKE_LOG)."""
import json
import os
import random
import re
import sys
import time

flags = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
how, times = os.environ.get("FAKE_HOW", ""), {"a": 0.001, "b": 0.002}
for word in sys.argv[1:]:
    if word.startswith("times="):
        times = json.loads(word[6:])
    if word.startswith("how="):
        how = word[4:]
if "FAKE_LOG" in os.environ:
    with open(os.environ["FAKE_LOG"], "a") as log:
        log.write(json.dumps(sys.argv[1:]) + "\n")
if how == "exit":
    sys.exit("out of luck")
if how == "hang":
    time.sleep(600)
if how == "old" and "benchmark_enable_random_interleaving" in flags:
    sys.exit("error: unrecognized command-line flag: --benchmark_enable_random_interleaving=true")
minimum = flags.get("benchmark_min_time", "")
if how != "new" and minimum.endswith("x"):
    sys.exit("benchmark_min_time: expected to be a double, but actually has value " + minimum)
iterations = int(minimum[:-1]) if minimum.endswith("x") else random.randint(900, 1000)
rows = []
for i in range(int(flags.get("benchmark_repetitions", "1"))):
    for name, seconds in times.items():
        if not re.search(flags.get("benchmark_filter", "."), name):
            continue
        row = {"name": name, "run_name": name, "run_type": "iteration", "repetition_index": i, "iterations": iterations,
               "real_time": seconds * 1e9 * random.gauss(1, 0.01), "time_unit": "ns", "bytes": 4096.0}
        if how == "error" and name == "b":
            row |= {"error_occurred": True, "error_message": "the sum is wrong"}
        if how == "fat":
            row["bytes"] = 4097.0
        rows.append(row)
cpus = 4 if how == "elsewhere" else 2
text = json.dumps({"context": {"num_cpus": cpus, "commit": "abc", "date": "2026-01-01"}, "benchmarks": rows})
if how == "garbage":
    text = text[:50]
if "benchmark_out" in flags:
    with open(flags["benchmark_out"], "w") as out:
        out.write(text)
else:
    print(text)
