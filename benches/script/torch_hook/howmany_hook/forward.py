# SPDX-License-Identifier: Apache-2.0
"""The batch of the first forward passes, and the modules that train.

A hook on all modules sees the first call of a module with parameters to train. It removes itself then, and comes back
after the backward pass, until WATCHED passes have shown their batch. So no module keeps a hook: the model can be saved,
copied, scripted and exported, and later calls cost nothing.

torch.compile. A traced call leaves the hook as it is: nothing of it gets into the graph, and no graph is made again.
    Its batch stays unknown. Compiled modules are seen when they are called, before their graph runs.
"""

import statistics
import sys
import warnings
import weakref

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from howmany_hook.batch import samples_of_call

WATCHED = 3  # passes; one may be a trial before training
LATER = 16  # passes, for the model of an optimizer that steps later than others


class Forward:
    def __init__(self, guard, trains, every=False):
        """Calls `trains` with the module of each call that is seen. `every`: sees all calls of the first passes."""
        self._trains, self._every = trains, every
        self._passes, self._now = [], 0  # samples of the last ones that were watched, and of this one
        self._left = WATCHED
        self._handle = None

        def called(module, args):
            if not torch.compiler.is_compiling():
                guard(self._see, module, args, sys._getframe(1))

        self._called = called
        warnings.filterwarnings("ignore", "Using `torch.compile\\(module\\)` when there are global hooks")
        self._watch()

    def passed(self):
        """Call after each backward pass."""
        if self._left == 0:
            return
        if self._now:
            self._passes = [*self._passes, self._now][-WATCHED:]
            self._now = 0
            self._left -= 1
        if self._left:
            self._watch()
        else:
            self._leave()

    def look_again(self, passes=WATCHED):
        """The batch may have changed."""
        self._left = max(self._left, passes)
        self._watch()

    def saw_optimizer(self):
        """Call when an optimizer steps for the first time."""
        if self._every:
            self.look_again(LATER)

    def samples(self):
        """Of one pass; 0 if unknown."""
        return int(statistics.median_high(self._passes)) if self._passes else self._now

    def _watch(self):
        self._handle = self._handle or register_module_forward_pre_hook(self._called)

    def _leave(self):
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _see(self, module, args, caller):
        if hasattr(module, "_orig_mod") and not self._every:  # torch.compile: its graph must not see the hook
            self._leave()
        if not torch.is_grad_enabled() or not module.training or torch._C._get_tracing_state() is not None:
            return
        if not any(p.requires_grad for p in module.parameters()):
            return
        if not self._every:
            self._leave()
        self._trains(module)
        if not self._now:
            self._now = samples_of_call(args, caller.f_locals.get("kwargs"))  # hooks on all modules get no keywords


class First:
    """The first module that trained, while it exists."""

    def __init__(self):
        self._module = None

    def __call__(self, module):
        if self._module is None:
            self._module = weakref.ref(module)

    def parameters(self):
        module = self._module and self._module()
        return [] if module is None else list(module.parameters())
