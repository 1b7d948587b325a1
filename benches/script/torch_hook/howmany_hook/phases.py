# SPDX-License-Identifier: Apache-2.0
"""The phases of a step, by the clock of the device that trains.

Clock. On the CPU time.perf_counter(). On a GPU CUDA events in the current stream: a phase is the time between two points
    of the stream, so a wait of the host that the GPU does not see is none. They are read after the last step.
    None is recorded while a stream is captured into a CUDA graph.
Data. The waits of loaders of training: they give a batch in most steps, or the last one before a backward pass.
Epochs. Starts of those loaders, and how much longer than usual their first batch and its step take: workers start beside
    them.
Outside. From the end of a step to the last fetch before its first backward pass, without the two above: validation,
    checkpoints, logging. Without a loader, to the first call of a module that trains, which only the steps after the
    timed ones see. Timed steps that are longer than usual, outside of their backward pass, add the excess.
Blocked. In a collective that Python waits for, or that DistributedDataParallel runs on buffers. In recorded steps also from
    the last bucket to the end of the backward pass (detail.py).
"""

import collections
import contextlib
import functools
import statistics
import time

import torch

FREQUENT = 0.5  # of the steps: a loader of training
LONG = 1.25  # times the usual time outside of backward
BETWEEN = ("data", "epochs", "outside")
PHASES = (*BETWEEN, "backward", "optimizer", "blocked")


class HostClock:
    mark = staticmethod(time.perf_counter)

    @staticmethod
    def between(start, end):
        return end - start


class GpuClock:
    @staticmethod
    def mark():
        """None within a capture."""
        if torch.cuda.is_current_stream_capturing():
            return None
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    @staticmethod
    def between(start, end):
        if start is None or end is None:
            return 0.0
        end.synchronize()
        return start.elapsed_time(end) * 1e-3


def watch_collectives(phases, guard, skipped):
    """Python waits for a collective in Work.wait(). DistributedDataParallel sends buffers before the forward pass."""
    if not torch.distributed.is_available():
        return
    ddp = torch.nn.parallel.DistributedDataParallel
    for owner, name in ((torch.distributed.Work, "wait"), (ddp, "_sync_buffers")):
        if hasattr(owner, name):
            setattr(owner, name, _blocking(getattr(owner, name), phases, guard, skipped))


def _blocking(call, phases, guard, skipped):
    @functools.wraps(call)
    @skipped
    def blocking(*args, **kwargs):
        guard(phases.begins, "blocked")
        try:
            return call(*args, **kwargs)
        finally:
            guard(phases.ends, "blocked")

    return blocking


class Spans:
    """Of a step. A span is (phase, key of the loader or None, mark, mark)."""

    __slots__ = ("opened", "closed", "all", "gap_end", "in_gap", "mode", "began", "buckets", "own")

    def __init__(self, opened):
        self.opened, self.closed = opened, None  # marks
        self.all = []
        self.gap_end, self.in_gap = None, 0  # mark of the last fetch before the first backward pass; the spans before it
        self.mode = ""  # of a step after the timed ones (detail.py), with
        self.began = 0.0  # by the clock of the host
        self.buckets = []
        self.own = 0.0  # seconds that only recording took


class Phases:
    """Collects the spans of the step that runs. Call from the thread that trains, and from that of its backward pass."""

    def __init__(self):
        self.clock = HostClock
        self.now = Spans(self.clock.mark())
        self._open = {}  # phase: mark
        self._was_backward, self._buckets_before = False, 0

    def begins(self, what):
        """Of calls within calls, the first begin and the first end count."""
        if what not in self._open:
            self._open[what] = self.clock.mark()

    def ends(self, what, key=None):
        start = self._open.pop(what, None)
        if start is not None:
            self.now.all.append((what, key, start, self.clock.mark()))

    def fetches(self):
        self.begins("data")
        if not self._was_backward:
            self.now.gap_end, self.now.in_gap = self._open["data"], len(self.now.all)

    def fetched(self, key, first):
        self.ends("data", key)
        if first and self.now.all:
            what, *rest = self.now.all[-1]
            self.now.all[-1] = ("first", *rest)

    def trains(self):
        """A module that trains is called, in a step that fetched nothing."""
        if self.now.gap_end is None and not self._was_backward:
            self.now.gap_end, self.now.in_gap = self.clock.mark(), len(self.now.all)

    def goes_backward(self):
        self.begins("backward")
        self._buckets_before = len(self.now.buckets)

    def went_backward(self):
        self.ends("backward")
        self._was_backward = True
        buckets = self.now.buckets[self._buckets_before :]
        if buckets:
            self.now.all.append(("blocked", None, buckets[-1].at, self.now.all[-1][3]))

    @contextlib.contextmanager
    def own_time(self):
        start = time.perf_counter()
        yield
        self.now.own += time.perf_counter() - start

    def take(self):
        """Ends the step. Returns its Spans."""
        done = self.now
        done.closed = self.clock.mark()
        self.now, self._was_backward = Spans(done.closed), False
        return done

    def on_gpu(self):
        """Marks are events from now on. Call between steps."""
        self.clock = GpuClock
        self.now = Spans(self.clock.mark())
        self._open.clear()


class Times:
    """Seconds of the phases of each step."""

    def __init__(self, steps, clock):
        """`steps`: their Spans, and the keys of the loaders that each fetched from."""
        self._clock = clock
        self._loaders = _of_training(steps)
        self._usual_wait = self._median_wait(steps[1:])
        self._all = [self._of(spans) for spans, _ in steps]
        later = [spans for spans, _ in steps[1:]], self._all[1:]
        if self._loaders:
            self._add_starts(*later)
        elif len(steps) > 1:
            self._add_excess(*later)

    def of(self, index):
        return self._all[index]

    def _of(self, spans):
        times = dict.fromkeys(PHASES, 0.0)
        inside = 0.0  # of the gap
        for index, (what, key, start, end) in enumerate(spans.all):
            if key is not None and key not in self._loaders:
                continue
            seconds = self._clock.between(start, end)
            if what == "first":
                times["epochs"] += max(0.0, seconds - self._usual_wait)
                times["data"] += min(seconds, self._usual_wait)
            else:
                times[what] += seconds
            inside += seconds if index < spans.in_gap else 0.0
        if spans.gap_end is not None:
            times["outside"] = max(0.0, self._clock.between(spans.opened, spans.gap_end) - inside)
        return times

    def _median_wait(self, steps):
        waits = [
            self._clock.between(start, end)
            for spans, _ in steps
            for what, key, start, end in spans.all
            if what == "data" and key in self._loaders
        ]
        return statistics.median(waits) if waits else 0.0

    def _add_starts(self, steps, all_times):
        """Adds what the steps with a start take longer."""
        trains = [self._seconds(one) - sum(times[name] for name in BETWEEN) for one, times in zip(steps, all_times)]
        starts = [any(what == "first" and key in self._loaders for what, key, *_ in one.all) for one in steps]
        usual = statistics.median([train for train, start in zip(trains, starts) if not start] or [0.0])
        for times, train, start in zip(all_times, trains, starts):
            if start and train > LONG * usual > 0:
                times["epochs"] += train - usual

    def _seconds(self, spans):
        return self._clock.between(spans.opened, spans.closed)

    def _add_excess(self, steps, all_times):
        other = [self._seconds(one) - times["backward"] for one, times in zip(steps, all_times)]
        usual = statistics.median(other)
        gaps = [times["outside"] for spans, times in zip(steps, all_times) if spans.mode]
        gap = statistics.median(gaps) if gaps else 0.0
        for spans, times, one in zip(steps, all_times, other):
            if not spans.mode:
                times["outside"] = gap + (one - usual if one > LONG * usual else 0.0)


def _of_training(steps):
    """The keys of loaders."""
    counts = collections.Counter(key for _, loaders in steps for key in loaders)
    frequent = {key for key, count in counts.items() if count >= FREQUENT * len(steps)}
    last = {spans.all[spans.in_gap][1] for spans, _ in steps if spans.gap_end is not None and spans.in_gap < len(spans.all)}
    return frequent | last - {None}
