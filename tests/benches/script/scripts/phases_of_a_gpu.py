# SPDX-License-Identifier: Apache-2.0
"""Takes two steps whose phases are timed by imitations of CUDA events, and prints what is known of them as JSON. The GPU is
a queue: an event is reached when the work before it is done."""

import json

import torch

from howmany_hook import phases
from howmany_hook.detail import Bucket


class Gpu:
    host = done = 0.0  # seconds: now, and when the queue is empty
    synchronized = 0

    @classmethod
    def runs(cls, seconds):
        cls.done = max(cls.done, cls.host) + seconds


torch.cuda.is_current_stream_capturing = lambda: False


class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.at = max(Gpu.done, Gpu.host)

    def synchronize(self):
        Gpu.synchronized += 1

    def elapsed_time(self, end):
        return 1e3 * (end.at - self.at)


def step(now, loader_seconds, gap):
    Gpu.host += gap  # of the host: the GPU has work until then
    now.fetches()
    Gpu.host += loader_seconds
    now.fetched("loader", False)
    Gpu.runs(0.010)  # forward
    now.goes_backward()
    Gpu.runs(0.020)
    bucket = Bucket(400, now.clock.mark())
    now.now.buckets.append(bucket)
    Gpu.runs(0.005)  # the exchange
    bucket.ended = now.clock.mark()
    now.went_backward()
    now.begins("optimizer")
    Gpu.runs(0.002)
    now.ends("optimizer")
    return now.take(), {"loader": None}


torch.cuda.Event = Event
collected = phases.Phases()
collected.on_gpu()
# The second batch comes 3 ms after the GPU has ended its work; the host waits for it much longer.
steps = [step(collected, 0.001, 0.0), step(collected, 0.040, 0.0)]
before = Gpu.synchronized
times = phases.Times(steps, collected.clock)
print(json.dumps({"synchronized": before, "steps": [times.of(0), times.of(1)],
                  "seconds": [collected.clock.between(s.opened, s.closed) for s, _ in steps]}))
