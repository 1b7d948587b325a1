# SPDX-License-Identifier: Apache-2.0
"""Hooks a Session into torch.

An exception in a hook ends the measurement, not the script: the reason goes into the record, and
the hooks do nothing from then on.
"""

import atexit
import functools
import os
import time

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim import optimizer as optimizers
from torch.utils.data import dataloader

from howmany_hook import place, rehearsal, wrap
from howmany_hook.loaders import Switch
from howmany_hook.memory import StepMemory
from howmany_hook.record import write_failure
from howmany_hook.session import Session
from howmany_hook.turns import Turns

clock = time.perf_counter


def guard_of(settings):
    """Returns a function that makes calls of a Session, until one fails."""
    working = True

    def guard(call, *arguments):
        nonlocal working
        if not working:
            return
        try:
            call(*arguments)
        except Exception as error:
            working = False
            write_failure(settings, error)

    return guard


def install(settings):
    place.bind(settings)
    if settings.try_ddp:
        wrap.show_own_gpu(settings)
    session, guard = Session(settings), guard_of(settings)
    if settings.rehearse and "LOCAL_RANK" in os.environ:
        session.rehearse(rehearsal.Rehearsal(settings.rehearse))
        rehearsal.install(session.rehearsal, settings.rank, settings.world)
    if settings.workers:
        switch = Switch(guard)
        switch.watch()
        session.take_turns(Turns(settings, switch, session.training_loader))
    if settings.memory:
        session.count_memory(StepMemory())
    _watch_optimizers(session, guard)
    _watch_loaders(session, guard)
    _watch_backward(session, guard)
    _watch_forward(session, guard, settings)
    _watch_ddp(session, guard)
    atexit.register(guard, session.finish)


def _watch_optimizers(session, guard):
    began = {}

    def begin(optimizer, args, kwargs):
        began[id(optimizer)] = clock()

    def end(optimizer, args, kwargs):
        now = clock()
        guard(session.optimizer_stepped, optimizer, now - began.pop(id(optimizer), now))

    optimizers.register_optimizer_step_pre_hook(begin)
    optimizers.register_optimizer_step_post_hook(end)


def _watch_loaders(session, guard):
    iterator = dataloader._BaseDataLoaderIter
    fetch = iterator.__next__
    if session.memory:
        fetch = session.memory.paused()(fetch)

    @functools.wraps(fetch)
    def timed(self):
        start, batch = clock(), None
        try:
            batch = fetch(self)
            return batch
        finally:
            guard(session.fetched, id(self._dataset), self._num_workers, batch, clock() - start)

    iterator.__next__ = timed


def _watch_backward(session, guard):
    backward = torch.autograd.backward

    @functools.wraps(backward)
    def timed(*args, **kwargs):
        start = clock()
        session.inside_backward = True
        try:
            return backward(*args, **kwargs)
        finally:
            session.inside_backward = False
            guard(session.went_backward, clock() - start)

    torch.autograd.backward = timed


def _watch_forward(session, guard, settings):
    """The first module with parameters to train that computes while gradients are on is the outermost
    one; samples may be made by modules too. If no loader was used before, its inputs show the batch."""

    def inputs_of(module, args, kwargs):
        if module.training:
            guard(session.forwarded, (args, kwargs))

    def first_forward(module, args):
        if not torch.is_grad_enabled() or not any(p.requires_grad for p in module.parameters()):
            return
        handle.remove()
        if settings.try_ddp:
            guard(wrap.wrap, module)
        if session.memory:
            guard(session.memory.trains, module)
        if not session.saw_fetch():
            module.register_forward_pre_hook(inputs_of, with_kwargs=True)
            guard(session.forwarded, args)

    handle = register_module_forward_pre_hook(first_forward)


def _watch_ddp(session, guard):
    ddp = torch.nn.parallel.DistributedDataParallel
    build = ddp.__init__

    @functools.wraps(build)
    def watched(self, *args, **kwargs):
        build(self, *args, **kwargs)
        guard(session.wrapped_ddp, self)

    ddp.__init__ = watched
