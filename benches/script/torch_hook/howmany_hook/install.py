# SPDX-License-Identifier: Apache-2.0
"""Hooks a Session into torch.

An exception in a hook ends the measurement, not the script: the reason goes into the record, and
the hooks do nothing from then on.
"""

import atexit
import functools
import multiprocessing
import os
import time

import torch
from torch._C._dynamo import eval_frame
from torch.optim import optimizer as optimizers
from torch.utils.data import dataloader

from howmany_hook import phases, place, process, rehearsal, wrap
from howmany_hook.forward import Forward
from howmany_hook.loaders import Switch
from howmany_hook.memory import StepMemory
from howmany_hook.record import write_exception, write_failure
from howmany_hook.session import Session
from howmany_hook.turns import Turns

clock = time.perf_counter


def _skipped(function):
    """torch.compile does not trace the function. It may trace the functions that it calls."""
    function._torchdynamo_disable = True  # within a graph
    if hasattr(eval_frame, "skip_code"):  # torch 2.5
        eval_frame.skip_code(function.__code__)
    else:
        action = eval_frame._FrameAction
        strategy = eval_frame._FrameExecStrategy(action.SKIP, action.DEFAULT)
        eval_frame.set_code_exec_strategy(function.__code__, strategy)
    return function


def guard_of(settings):
    """Returns a function that makes calls of a Session, until one fails. torch.compile traces none of them.
    torch.compiler.disable would do so too, but imports the compiler, which takes a second. Its attribute `spent` returns the
    seconds of all calls."""
    working, spent = True, 0.0

    @_skipped
    def guard(call, *arguments):
        nonlocal working, spent
        if not working:
            return
        start = clock()
        callback = eval_frame.set_eval_frame(None)
        try:
            call(*arguments)
        except Exception as error:
            working = False
            write_failure(settings, error)
        finally:
            eval_frame.set_eval_frame(callback)
            spent += clock() - start

    guard.spent = lambda: spent
    return guard


def _leave_agent():
    """A rank that the script starts itself, with an address of its own, is none of the torchrun that started the
    script. It would wait for the store of that."""
    imports_main = getattr(multiprocessing.current_process(), "_inheriting", False)
    if imports_main or multiprocessing.parent_process() is not None:
        os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)


def install(settings):
    _leave_agent()
    place.bind(settings)
    if settings.try_ddp:
        wrap.show_own_gpu(settings)
    guard = guard_of(settings)
    session = Session(settings, guard)
    guard(process.describe, settings)
    if settings.count:
        from howmany_hook import counting

        counting.install(session, settings)
    elif settings.rehearse and "LOCAL_RANK" in os.environ:
        session.rehearse(rehearsal.Rehearsal(settings.rehearse))
        rehearsal.install(session.rehearsal, settings.rank, settings.world)
    if settings.workers:
        switch = Switch(guard)
        switch.watch()
        session.take_turns(Turns(settings, switch, session.training_loader))
    if settings.memory:
        session.count_memory(StepMemory())
    session.watch_forward(Forward(guard, _trains(session, settings), every=settings.try_ddp))
    optimizers.register_optimizer_step_pre_hook(functools.partial(guard, session.optimizer_began))
    optimizers.register_optimizer_step_post_hook(functools.partial(guard, session.optimizer_stepped))
    _watch_loaders(session, guard)
    _watch_backward(session, guard)
    if not settings.memory and not settings.count:
        phases.watch_collectives(session.phases, guard, _skipped)
    atexit.register(guard, process.describe, settings)
    atexit.register(guard, write_exception, settings.out)
    atexit.register(guard, session.finish)  # runs first


def _trains(session, settings):
    wrapping = wrap.Wrapping() if settings.try_ddp else None

    def trains(module):
        if wrapping:
            wrapping(module)
        session.trains(module)

    return trains


def _watch_loaders(session, guard):
    iterator = dataloader._BaseDataLoaderIter
    fetch = iterator.__next__
    if session.counter:
        fetch = session.counter.mode.paused(fetch)
    elif session.memory:
        fetch = session.memory.paused()(fetch)

    @functools.wraps(fetch)
    @_skipped
    def timed(self):
        guard(session.phases.fetches)
        start, cpu, batch = clock(), time.thread_time(), None
        try:
            batch = fetch(self)
            return batch
        finally:
            guard(session.fetched, id(self._dataset), self, batch, clock() - start, time.thread_time() - cpu)

    iterator.__next__ = timed
    if not session.takes_turns():
        _watch_starts(session.phases, guard)


def _watch_starts(phases, guard):
    """An iterator starts its workers when it is made, or is reset if they are persistent."""
    for kind in (dataloader._SingleProcessDataLoaderIter, dataloader._MultiProcessingDataLoaderIter):
        for name in ("__init__", "_reset"):
            setattr(kind, name, _timed_start(getattr(kind, name), phases, guard))


def _timed_start(start, phases, guard):
    @functools.wraps(start)
    @_skipped
    def timed(self, loader, *args, **kwargs):
        guard(phases.begins, "epochs")
        try:
            return start(self, loader, *args, **kwargs)
        finally:
            guard(phases.ends, "epochs", id(loader.dataset))

    return timed


def _watch_backward(session, guard):
    """torch.autograd.backward and grad both call the engine here, and stay the functions that they are."""
    run = torch.autograd.graph._engine_run_backward

    @functools.wraps(run)
    @_skipped
    def timed(outputs, *args, **kwargs):
        if session.depth == 0:
            guard(session.phases.goes_backward)
        start = clock()
        session.depth += 1
        try:
            return run(outputs, *args, **kwargs)
        finally:
            session.depth -= 1
            if session.depth == 0:  # not one within another, as of torch.utils.checkpoint
                guard(session.went_backward, clock() - start, outputs, kwargs.get("accumulate_grad", True))

    for module in (torch.autograd.graph, torch.autograd):
        module._engine_run_backward = timed
