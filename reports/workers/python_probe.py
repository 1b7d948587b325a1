# SPDX-License-Identifier: Apache-2.0
"""Prints the cost of Python's worker processes as JSON. A batch is transferred as in PyTorch: a queue each way, and
two descriptors that are fetched."""
import json
import multiprocessing
import os
import platform
import statistics
import tempfile
import time
from multiprocessing.reduction import DupFd
try:
    import torch
except ImportError:
    torch = None

def work(tasks, results):
    with tempfile.TemporaryFile() as file:
        for batch in iter(tasks.get, None):
            results.put((batch, DupFd(file.fileno()), DupFd(file.fileno())))

def measure(method, batches):
    context = multiprocessing.get_context(method)
    tasks, results = context.Queue(), context.Queue()
    begin = time.perf_counter()
    worker = context.Process(target=work, args=(tasks, results), daemon=True)
    worker.start()
    times = []
    for batch in range(1 + batches):
        start = time.perf_counter()
        tasks.put(batch)
        for fd in results.get(timeout=30)[1:]:
            os.close(fd.detach())
        times.append(time.perf_counter() - (start if batch else begin))
    tasks.put(None)
    worker.join()
    return times

if __name__ == "__main__":
    methods = [m for m in ("fork", "forkserver", "spawn") if m in multiprocessing.get_all_start_methods()]
    times = {method: measure(method, 100) for method in methods}
    print(json.dumps({"version": platform.python_version(), "torch": torch and torch.__version__,
                      "method": multiprocessing.get_start_method(), "start_s": {m: t[0] for m, t in times.items()},
                      "batch_s": statistics.median(times[methods[0]][1:])}))
