# SPDX-License-Identifier: Apache-2.0
"""The measurement of one rank: events in, lines of the record out.

A step ends when the first optimizer that was seen has stepped and at least one backward pass or
fetched batch came before. So gradient accumulation, two optimizers, optimizers that step per group
and optimizers within backward count as one step each. If there is no torch.optim.Optimizer, or none
has stepped after many backward passes, each backward pass is a step.

Time. By the clock of the device (phases.py). On a GPU a step lasts from one CUDA event to the next. Events are read after
    the last step, so no step is synchronised.
Thread safety. Call from the thread that trains.
"""

import collections
import dataclasses
import functools
import os
import time

import torch

from howmany_hook import counted, cycles, detail, objects, place, store
from howmany_hook.agreement import Agreement
from howmany_hook.batch import samples_in
from howmany_hook.exchange import Exchange
from howmany_hook.forward import First
from howmany_hook.memory import FewSteps
from howmany_hook.phases import Phases, Times
from howmany_hook.record import Record

clock = time.perf_counter
LOGGED_STEPS = 10  # their collectives are written
FEW_PASSES, MANY_PASSES = 3, 256  # without a step: of a script without an optimizer, with one
MOST_UNFED = 0.1  # of the steps, without a batch of the loader; with more, its batches are not those of steps
LOOKS_AGAIN = 8  # step, and at 16, 32, ...: at the inputs of the model, if no loader feeds it
MEMORY_STEPS, COUNTED_STEP = 3, 1  # the last step that is needed
KEPT_STEPS = 50  # the last ones hold their collectives until it is known which was the last timed step


class Step:
    """What happened since the last step ended. Seconds are of the host.

    All steps are kept. Slots and few objects keep the garbage collector fast.
    """

    __slots__ = (
        "seconds", "backward", "optimizer", "backwards", "passes", "loader", "loaders", "began", "counts", "collectives", "spans",
        "spent",
    )  # fmt: skip

    def __init__(self):
        self.seconds = self.backward = self.optimizer = 0.0
        self.backwards = 0
        self.passes = 0  # of them, those of the optimizer that is counted
        self.loader = None  # key of the one that gave a batch last, before the first backward pass
        self.loaders = {}  # key: fetches, samples, wait
        self.began = 0.0  # time of the host
        self.counts = ()  # backward passes, samples, optimizers: while they change, nothing has settled
        self.collectives = ()  # of a rehearsal
        self.spans = None  # by the clock of the device, see phases.py
        self.spent = 0.0  # by the hook, until its end

    @property
    def wait(self):
        return sum(wait for _, _, wait in self.loaders.values())

    @property
    def fetched(self):
        """Samples."""
        return self.loaders[self.loader][1] if self.loader in self.loaders else 0


@dataclasses.dataclass
class Loader:
    workers: int
    persistent: bool
    fetches: int = 0
    cpu: float = 0.0  # seconds of all fetches, in the thread that trains


class Session:
    def __init__(self, settings, guard):
        self._settings, self._guard = settings, guard
        self._agreement = Agreement(settings)
        self._record = None
        self._forked = False  # a child process of the script measures nothing
        os.register_at_fork(after_in_child=self._forget)
        self._steps, self._now = [], Step()
        self._last_end = clock()
        self._began = {}  # id of an optimizer that steps: when
        self._optimizers = []  # ids, in the order seen
        self._gradient_bytes = 0  # of all of them
        self.depth = 0  # of the backward passes that run, set by install.py
        self._passes = {True: 0, False: 0}  # before it is known what ends a step: whether gradients accumulate
        self._ends_step = None  # such a pass; None: an optimizer
        self._optimizer_in_backward = False
        self._counted = None  # the first optimizer: its steps are counted
        self._passed = 0  # backward passes since an optimizer stepped
        self.phases = Phases()
        self._detail = None  # of the steps after the timed ones
        self._cuda = None  # unknown until a step ends
        self._loaders = {}  # key: Loader
        self._iterators = {}  # key: its iterator, while steps are counted
        self._exchange = None  # of a group that shows no other
        self._model = First()
        self._forward = None
        self._last_loader = None
        self._turns = None
        self.rehearsal = self.memory = self.counter = None
        self._stepping = 0  # optimizers
        self._training = None  # key of the loader with the most fetches, when finished
        self._fed = True  # it gives each step its batch
        self._finished, self._steps_after = False, 0

    def takes_turns(self):
        return self._turns is not None

    def take_turns(self, turns):
        """Changes the loader while the script trains (turns.py)."""
        self._agreement = self._turns = turns

    def rehearse(self, rehearsal):
        """The process group is pretended (rehearsal.py)."""
        self.rehearsal = rehearsal
        rehearsal.backward_pass = self.backward_pass

    def count_memory(self, memory):
        """The memory of steps is counted (memory.py)."""
        self.memory, self._agreement = memory, FewSteps(COUNTED_STEP if self.counter else MEMORY_STEPS)

    def count(self, counter, device):
        """The operations of steps are counted (counted.py)."""
        self.counter, self._pretended = counter, device
        counter.phase = self._phase

    def _phase(self):
        return "backward" if self.depth > 0 else "optimizer" if self._stepping else "forward"

    def watch_forward(self, forward):
        self._forward = forward

    # Events, from install.py.

    def fetched(self, key, loader, batch, seconds, cpu):
        """`loader`: its iterator. `batch` is None if it had no more. `cpu`: seconds of this thread."""
        self.phases.fetched(key, batch is not None and loader._num_yielded == 1)
        fetch = self._now.loaders.setdefault(key, [0, 0, 0.0])
        fetch[0] += 1
        fetch[1] += 0 if batch is None else samples_in(batch)
        fetch[2] += seconds
        if key not in self._loaders:
            self._loaders[key] = Loader(loader._num_workers, bool(loader._persistent_workers))
        known = self._loaders[key]
        known.fetches, known.cpu = known.fetches + 1, known.cpu + cpu
        if batch is not None:
            self._last_loader = key
        if self.counter:
            self._iterators[key] = loader

    def trains(self, module):
        self.phases.trains()
        self._model(module)
        if self.memory:
            self.memory.trains(module)

    def went_backward(self, seconds, outputs, accumulates):
        """Raises SystemExit after the last step, if backward passes are the steps."""
        if self._finished or self._forked:
            return self._insist() if self._ends_step is accumulates else None
        self.phases.went_backward()
        now = self._now
        now.backward += seconds
        now.loader = now.loader or self._last_loader
        if accumulates:
            now.backwards += 1
            self._passed += 1
            if self._exchange:
                self._exchange.passed()
        if self._forward and (accumulates or not self._passes[True]):
            self._forward.passed()
        if self._counted is None:
            self._passes[accumulates] += 1
            if self._ends_step is None and self._without_optimizer():
                self._ends_step = self._passes[True] > 0
            if self._ends_step is accumulates:
                if self.memory:
                    self.memory.note()
                self._now.backwards = self._now.passes = 1
                self._end_step(outputs)

    def backward_pass(self):
        """The pass of the step that runs now, from 0; -1 outside of a backward pass."""
        return self._now.backwards if self.depth > 0 else -1

    def optimizer_began(self, optimizer, args, kwargs):
        self._began[id(optimizer)] = clock()
        self._stepping += 1
        if self.depth == 0:
            self.phases.begins("optimizer")
        if self._exchange and optimizer is self._counted and not self._finished:
            self._exchange.stepping(len(self._steps), objects.parameters_of(optimizer))

    def optimizer_stepped(self, optimizer, args, kwargs):
        """Raises SystemExit after the last step."""
        now = clock()
        self._stepping = max(0, self._stepping - 1)
        seconds = now - self._began.pop(id(optimizer), now)
        if self._finished or self._forked:
            return self._insist()
        if self.depth > 0:  # the time of backward has it
            self._optimizer_in_backward = True
        else:
            self._now.optimizer += seconds
            self.phases.ends("optimizer")
        if self.memory:
            self.memory.stepped(optimizer)
        if id(optimizer) not in self._optimizers:
            self._optimizers.append(id(optimizer))
            self._gradient_bytes += objects.gradient_bytes(objects.parameters_of(optimizer))
            if self._forward:
                self._forward.saw_optimizer()
        if self._counted is None and self._ends_step is None:
            self._counted = optimizer
        if optimizer is self._counted:
            self._now.passes = self._passed
        self._passed = 0
        trained = self._now.backward or self._now.loaders or not self._steps  # also by gradients of torch.func
        if optimizer is self._counted and trained:
            self._end_step()

    # Inside.

    def _forget(self):
        """A process that was forked before the first step may be a rank."""
        self._forked = bool(self._steps)

    def _without_optimizer(self):
        passes = max(self._passes.values())
        if passes == FEW_PASSES:
            return not objects.objects_of((torch.optim.Optimizer,))
        return passes >= MANY_PASSES

    def _end_step(self, outputs=()):
        """`outputs`: of the model, if there is no optimizer."""
        now = clock()
        if self._cuda is None:
            self._begin(outputs)
        self._now.spans = self.phases.take()
        if self.rehearsal:
            self._now.collectives = self.rehearsal.take_log()
            if len(self._steps) >= KEPT_STEPS:
                self._steps[-KEPT_STEPS].collectives = ()
        self._now.loader = self._now.loader or self._last_loader
        self._last_loader = None
        self._now.began, self._now.seconds = self._last_end, now - self._last_end
        self._now.counts = self._counts(self._now)
        self._last_end = now
        self._now.spans.began, self._now.spent = self._now.began, self._guard.spent()
        self._steps.append(self._now)
        self._now = Step()
        index = len(self._steps) - 1
        if self.counter:
            self.counter.watch(self._parameters())
            self.counter.stepped()
        if self._exchange:
            self._exchange.ended()
        steps = self._agreement.after(index, self._steps[-1])
        if steps is None:
            return
        if steps.last <= index < steps.stop:
            self._goes_on()
        if index >= steps.stop:
            self.finish(steps)
            raise SystemExit(0)

    def _goes_on(self):
        """After the timed steps."""
        if self.rehearsal or self.memory or self.counter or self._turns:
            return
        if self._detail is None:
            self._detail = detail.Detail(self.phases, self._settings.tries)
        self.phases.now.mode = self._detail.next()
        if self._forward and self._steps[-1].loader is None and not detail.compiled():
            self._forward.look_again(1)

    def _counts(self, step):
        index = len(self._steps)
        if self._forward and step.loader is None and index >= LOOKS_AGAIN and index & (index - 1) == 0:
            self._forward.look_again()
        forwarded = self._forward.samples() if self._forward else 0
        return step.backwards, step.fetched, forwarded, len(self._optimizers)

    def _insist(self):
        """Ends a script that went on after SystemExit, two steps later."""
        if self._finished and not self._forked:
            self._steps_after += 1
            if self._steps_after > 1:
                os._exit(0)

    def _begin(self, outputs):
        """After the first step: everything that exists only by now."""
        world, backend = objects.process_group()
        if not self.rehearsal and world > 1:
            place.take_rank(self._settings, torch.distributed.get_rank(), world)
        agrees = isinstance(self._agreement, Agreement) and not self.rehearsal
        group = store.of_group(self._settings) if agrees else None
        if group:
            self._agreement.share(group)
        elif agrees and self._settings.spans_hosts and world == 1:
            self._agreement.stay_alone()
        self._record = Record(self._settings, group)
        parameters = self._parameters()
        devices = [tensor.device.type for tensor in [*parameters[:1], *outputs] if hasattr(tensor, "device")]
        self._cuda = "cuda" in devices[:1]
        if self.memory:
            self.memory.begin(self._cuda and not self.counter)
        elif self._cuda:
            torch.cuda.reset_peak_memory_stats()
        if self._cuda and not self.counter:
            self.phases.on_gpu()
        if self._ends_step is not None:
            self._gradient_bytes = objects.gradient_bytes(parameters)
        parallel = objects.parallelism(parameters, world)
        if parallel == "group" and not self.rehearsal and not self.memory and not self.counter:
            self._exchange = Exchange()
        self._record.start(self._start_line(parameters, world, backend, parallel))

    def _parameters(self):
        return self._model.parameters() if self._counted is None else objects.parameters_of(self._counted)

    def _start_line(self, parameters, world, backend, parallel):
        return {
            "kind": "start",
            "rank": self._settings.rank,
            "torch": objects.versions(backend),
            "threads": torch.get_num_threads(),
            "cores": sorted(os.sched_getaffinity(0)),
            "host": os.uname().nodename,
            "device": "cuda" if self._cuda else "cpu",
            "world": world,
            "backend": backend,
            "parallel": parallel,
            "parameters": sum(p.numel() for p in parameters),
            "optimizer": None if self._counted is None else type(self._counted).__name__,
        }

    def finish(self, steps=None):
        """Writes the record. `steps` is None if the script ended by itself."""
        if self._finished or self._forked:
            return
        self._finished = True
        if not self._steps:
            return
        self._training = self._turns.loader() if self._turns else self.training_loader()
        if steps is None and isinstance(self._agreement, Agreement):
            steps = self._agreement.passed(len(self._steps))
        timed = steps or self._agreement.so_far(len(self._steps))
        self._fed = self._is_fed()
        self._times = Times([(step.spans, step.loaders) for step in self._steps], self.phases.clock)
        seconds = [self._seconds(index) for index in range(len(self._steps))]
        lines = [self._step_line(index, seconds[index]) for index in range(len(self._steps))]
        if self._turns and steps:
            lines += self._turns.lines()
        if self.rehearsal and steps:
            lines += self._collective_lines(steps.last)
        if self.counter:
            lines.append(self._counted_line(lines[-1]))
        end = self._end_line(steps is not None, timed) | (_timed_line(timed, seconds) if timed else {})
        self._record.end(lines + [end])

    def _cost(self, timed):
        """Of the hook, in a timed step."""
        if timed is None or timed.last <= timed.first:
            return 0.0
        return (self._steps[timed.last].spent - self._steps[timed.first].spent) / (timed.last - timed.first)

    def _end_line(self, complete, timed):
        training = self._loaders.get(self._training)
        return {
            "kind": "end",
            "complete": complete,
            "by_backward": self._ends_step is not None,
            "optimizers": len(self._optimizers),
            "optimizer_in_backward": self._optimizer_in_backward,
            "gradient_bytes": self._gradient_bytes,
            "loader": self._training is not None,
            "workers": training and training.workers,
            "peak_bytes": objects.peak_bytes(self._cuda),
            "loader_cpu_s": training.cpu / training.fetches if training and training.workers == 0 else None,
            "persistent_workers": bool(training and training.persistent),
            "recording_s": self._cost(timed),
            "detail": self._detail.figures() if self._detail else None,
            "exchange": self._exchange.line() if self._exchange else None,
            "wrapped": objects.wrapped_share() if self._settings.try_ddp and self._settings.world > 1 else None,
            "memory": self.memory.end() if self.memory and not self.counter else None,
        }

    def _counted_line(self, last):
        world, _ = objects.process_group()
        parallel = objects.parallelism(self._parameters(), world)
        return self.counter.line(self._pretended, world, parallel, last["samples"], last["backwards"], self.memory.end(),
                                 self._loader_cost(last["samples"]))  # fmt: skip

    def _loader_cost(self, samples):
        """Of the loader that trains; None if there is none."""
        iterator = self._iterators.get(self._training)
        if iterator is None:
            return None
        fetches = max(1, self._fetches(self._steps[-1])[0])
        found = counted.time_batches(iterator, samples // fetches)
        return found and found | {"workers": getattr(iterator, "asked_workers", 0)}

    def training_loader(self):
        """The key of the loader that fed the most steps so far; None without fetches."""
        fed = collections.Counter(step.loader for step in self._steps if step.loader is not None)
        return fed.most_common(1)[0][0] if fed else None

    def _fetches(self, step):
        """The fetches of training: number, samples and wait."""
        key = self._training if self._training in step.loaders else step.loader  # a new one for each part of the data
        return step.loaders.get(key, (0, 0, 0.0))

    def _is_fed(self):
        unfed = sum(self._fetches(step)[0] == 0 for step in self._steps)
        return unfed < MOST_UNFED * len(self._steps)

    def _step_line(self, index, seconds):
        step = self._steps[index]
        fetches, samples, wait = self._fetches(step)
        forwarded = self._forward.samples() * max(1, step.passes)
        known = samples or forwarded if self._fed else forwarded or samples
        return {
            "kind": "step",
            "step": index,
            "s": seconds,
            "wait_s": wait,
            "backward_s": step.backward,
            "optimizer_s": step.optimizer,
            "samples": self._settings.samples or known,
            "forwarded": self._settings.samples or forwarded,
            "fetches": fetches,
            "backwards": step.backwards,
            "phases": {f"{name}_s": round(value, 9) for name, value in self._times.of(index).items()},
        } | self._detail_members(step.spans)

    def _detail_members(self, spans):
        if not spans.mode:
            return {}
        between = self.phases.clock.between
        since = functools.partial(between, spans.opened)
        gap = [] if spans.gap_end is None else [["outside", 0.0, since(spans.gap_end)]]
        return {
            "mode": spans.mode,
            "began_s": spans.began,
            "own_s": spans.own,
            "spans": gap + [[what, since(start), between(start, end)] for what, _, start, end in spans.all],
            "buckets": [[b.bytes, since(b.at), since(b.ended)] for b in spans.buckets if b.ended is not None],
        }

    def _collective_lines(self, last):
        """Of the last timed steps."""
        return [
            {
                "kind": "collective",
                "step": index,
                "op": one.kind,
                "bytes": one.bytes,
                "ranks": one.ranks,
                "stride": one.stride,
                "at_s": self._since_begin(index, one.at),
                "s": one.seconds,
                "backward": one.backward,
                "waited_s": None if one.waited is None else self._since_begin(index, one.waited),
            }
            for index in range(max(1, last - LOGGED_STEPS + 1), last + 1)
            for one in self._steps[index].collectives
        ]

    def _since_begin(self, index, at):
        if isinstance(at, float):  # of a tensor on the CPU
            return at - self._steps[index].began
        return self.phases.clock.between(self._steps[index].spans.opened, at)

    def _seconds(self, index):
        if not self._cuda or index == 0:
            return self._steps[index].seconds
        spans = self._steps[index].spans
        return self.phases.clock.between(spans.opened, spans.closed)


def _timed_line(timed, seconds):
    """`seconds`: of all steps."""
    found = cycles.find(seconds[timed.first : timed.last + 1])
    windows = found.windows if found.count() else []
    whole = [{"first": timed.first + a, "last": timed.first + b} for a, b in windows]
    return {"first": timed.first, "last": timed.last, "cycles": whole, "alone": found.alone}
