#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for speedup_bench and howmany-devices (by the name it is called with): same flags, same files, step
times from a known curve. FAKE_SERIAL is Amdahl's serial share, FAKE_NOISE the relative spread, FAKE_SECONDS the duration
of a run, FAKE_FAIL a JSON object from "mode@devices" to what happens there: "exit", "die", "hang", "garbage", "error",
"usage", "silent"."""
import json
import os
import random
import signal
import sys
import time

from flags import arguments

STEP = 0.01


def devices_json():
    def parts(*names):
        return [{"name": n, "usable": True, "why": "built in"} for n in names]
    return {"cpu_devices": {"usable_cores": int(os.environ.get("FAKE_CORES", "4")),
                            "default_count": int(os.environ.get("FAKE_CORES", "4")), "cores_per_device": 1,
                            "allowed": list(range(int(os.environ.get("FAKE_CORES", "4"))))},
            "gpus": [{"index": i} for i in range(int(os.environ.get("FAKE_GPUS", "0")))],
            "backends": {"comms": parts("local", "gloo"), "kernels": parts("reference", "cuda")},
            "launch": {"launcher": "alone", "rank": 0, "world": 1, "local_rank": 0, "local_world": 0, "host": "here",
                       **json.loads(os.environ.get("FAKE_LAUNCH", "{}"))},
            "models": parts("simple_net", "mlp", "resnet18"), "modes": [{"name": n, "over_ranks": n == "ddp"} for n in ("single", "data_parallel", "ddp")]}


def step_seconds(n, weak, mode):
    serial = float(os.environ.get("FAKE_SERIAL", "0.02")) * (2 if mode == "data_parallel" else 1)
    share = serial + (1 - serial) / n  # relative to the time of one device for the same work
    return STEP * share * (n if weak else 1)


def misbehave(how):
    if how == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("2026-11-23T20:04:51+00:00", "Running /bin/speedup_bench", "Run on (2 X 2000 MHz CPU s)", "CPU Caches:",
              "  L1 Data 32 KiB (x2)", "Load Average: 1.00, 1.00, 1.00",
              "***WARNING*** Library was built as DEBUG. Timings may be affected.",
              sep="\n", file=sys.stderr, flush=True)
        time.sleep(600)
    if how == "die":
        print("terminate called without an active exception", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        print("[gloo] connection reset", "[gloo] peer 1 closed", sep="\n", file=sys.stderr)
        sys.exit(3)
    if how == "usage":
        print('unknown model "mpl"; did you mean mlp?', file=sys.stderr)
        sys.exit(2)
    if how == "silent":
        sys.exit(0)


def main():
    if "devices" in os.path.basename(sys.argv[0]):
        print(json.dumps(devices_json()))
        return
    a = arguments(sys.argv[1:])
    n = len(a["devices"].split(","))
    weak = "batch-per-device" in a
    how = json.loads(os.environ.get("FAKE_FAIL", "{}")).get(f"{a['mode']}@{n}", "")
    if "list" in a:
        if how == "refuse":
            misbehave("usage")
        return
    if "FAKE_LOG" in os.environ:
        with open(os.environ["FAKE_LOG"], "a") as log:
            log.write(json.dumps(a | {"pid": os.getpid()}) + "\n")
    if how == "wait-once" and not os.path.exists(os.environ["FAKE_LOG"] + ".waited"):
        open(os.environ["FAKE_LOG"] + ".waited", "w").close()
        time.sleep(600)
    misbehave(how)
    time.sleep(float(os.environ.get("FAKE_SECONDS", "0")))
    batch = int(a.get("batch-per-device") or a["global-batch"])
    rng = random.Random(f"{a.get('seed')}{a['mode']}{n}{os.getpid()}")
    noise = float(os.environ.get("FAKE_NOISE", "0.001"))
    drift = rng.gauss(1, noise)
    seconds = [step_seconds(n, weak, a["mode"]) * drift * rng.gauss(1, noise) for _ in range(20)]
    median = sorted(seconds)[10]
    samples = batch * (n if weak else 1)
    name = (f"speedup/{a['mode']}/{a['model']}/backend:{a.get('backend', 'local')}/devices:{n}/batch:{batch}/"
            f"scaling:{'weak' if weak else 'strong'}/iterations:1/manual_time")
    row = {"name": name, "family_index": 0, "per_family_instance_index": 0, "run_name": name, "run_type": "iteration",
           "repetitions": 1, "repetition_index": 0, "threads": 1, "iterations": 20, "real_time": median * 1e9,
           "cpu_time": median * 1e9, "time_unit": "ns", "median_s": median, "samples_per_s": samples / median,
           "flop_per_s": 1e9 * n, **({"ranks": int(os.environ["FAKE_RANKS"])} if "FAKE_RANKS" in os.environ else {})}
    if how == "error":
        row |= {"error_occurred": True, "error_message": "the loss is wrong"}
    with open(a["benchmark_out"], "w") as out:
        if how == "garbage":
            out.write('{"context": {}, "benchmarks": [{"name": NaN')
            return
        json.dump({"context": {"date": "2026-01-01", "commit": "abc", "cpu": "fake"}, "benchmarks": [row]}, out)
    flags = ["oversubscribed"] if n > int(os.environ.get("FAKE_CORES", "4")) else []
    if "trace-file" in a:  # appended, as by speedup_bench
        with open(a["trace-file"], "a") as trace:
            trace.write(name + "\n")
    if "samples-file" not in a:
        return
    with open(a["samples-file"], "a") as out:
        out.write(json.dumps({"name": name, "seconds": seconds, "converged": True, "flags": flags,
                              "parameters": {}, "world": n}) + "\n")


if __name__ == "__main__":
    main()
