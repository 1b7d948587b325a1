# SPDX-License-Identifier: Apache-2.0
"""Changes the number of workers of the script's own DataLoader while it trains (turns.py decides).

A changed loader goes on with the indices of the epoch that are left. Batches that its old workers
had made ahead are lost. Samples, collation, pinned memory and the start method stay the script's.

Thread safety. Call from the thread that trains.
"""

import contextlib
import dataclasses
import functools
import os
import time

from torch.utils.data import IterableDataset, dataloader

from howmany_hook.batch import samples_in, tensors_in

clock = time.perf_counter
DEFAULT_PREFETCH = 2  # of DataLoader with workers
CYCLES = 2  # in which every worker makes a batch: the fewest for a rate


@dataclasses.dataclass
class Figures:
    """Of one turn. None: not measured."""

    first_batch_s: float = None  # from starting the workers to their first batch
    alone_samples_per_s: float = None  # batches taken as fast as they come
    bytes_per_worker: float = None  # memory that a worker shares with no process


class Continued:
    """In place of a sampler: the indices that are left."""

    def __init__(self, left):
        self._left = left

    def __iter__(self):
        return self._left


class Batches:
    """What the script iterates over: the batches of `inner`, which a turn replaces."""

    def __init__(self, switch, loader, inner, turn):
        self._switch, self._loader = switch, loader
        self.inner, self.turn = inner, turn

    def __iter__(self):
        return self

    def __next__(self):
        self._switch.prepare(self, self._loader)
        batch = next(self.inner)
        self._switch.saw(self._loader, batch)
        return batch

    def __len__(self):
        return len(self._loader)

    def __getattr__(self, name):
        return getattr(self.__dict__["inner"], name)


class Switch:
    def __init__(self, guard):
        self._guard = guard
        self._bytes = {}  # id of the dataset: of a batch
        self._loaders = {}  # id of the dataset: DataLoader, in the order of first use
        self._chosen = None  # DataLoader
        self._turn = None  # the current turns.Turn
        self._batches = None  # of the chosen loader
        self._opened = None  # when workers started; None: they have given a batch
        self._inside = False  # an iterator is being made
        self.figures = {}  # index of a turn that took place: Figures

    def watch(self):
        """Replaces DataLoader.__iter__, and _get_iterator for subclasses that call it."""
        for name in ("__iter__", "_get_iterator"):
            setattr(dataloader.DataLoader, name, self._watched(getattr(dataloader.DataLoader, name)))

    def _watched(self, iterate):
        @functools.wraps(iterate)
        def watched(loader):
            if self._inside:  # the one calls the other
                return iterate(loader)
            self._loaders[id(loader.dataset)] = loader
            if self._turn is None or loader.dataset is not self._chosen.dataset:
                with self._unwatched():
                    return Batches(self, loader, iterate(loader), None)
            self.figures.setdefault(self._turn.index, Figures())
            self._batches = Batches(self, loader, self._open(loader, self._turn), self._turn.index)
            return self._batches

        return watched

    @contextlib.contextmanager
    def _unwatched(self):
        before, self._inside = self._inside, True
        try:
            yield
        finally:
            self._inside = before

    def _open(self, loader, turn, left=None):
        with self._unwatched():
            return open_loader(loader, turn, left)

    def choose(self, key):
        """False if that loader is unknown: a subclass may have its own __iter__."""
        self._chosen = self._loaders.get(key)
        return self.has_chosen()

    def has_chosen(self):
        return self._chosen is not None

    def chosen_key(self):
        return id(self._chosen.dataset)

    def numbers(self):
        """The script's own number of workers, and batches ahead of each."""
        return self._chosen.num_workers, self._chosen.prefetch_factor or DEFAULT_PREFETCH

    def key_of(self, number):
        """`number`: 1 is the loader that was used first."""
        keys = list(self._loaders)
        return keys[number - 1] if 0 < number <= len(keys) else None

    def batches_per_epoch(self):
        """0 if unknown."""
        try:
            return len(self._chosen)
        except TypeError:
            return 0

    def batch_bytes(self):
        return self._bytes.get(self.chosen_key(), 0)

    def saw(self, loader, batch):
        if self._opened is not None and loader.dataset is self._chosen.dataset:
            self.figures[self._turn.index].first_batch_s = clock() - self._opened
            self._opened = None
        if id(loader.dataset) not in self._bytes:
            self._bytes[id(loader.dataset)] = 0
            self._guard(self._measure_batch, loader, batch)

    def _measure_batch(self, loader, batch):
        self._bytes[id(loader.dataset)] = sum(t.numel() * t.element_size() for t in tensors_in(batch))

    def turn_to(self, turn):
        """From the next batch on."""
        self._turn = turn

    def close(self):
        self._measure_memory()

    def prepare(self, batches, loader):
        if self._turn is None or batches.turn == self._turn.index:
            return
        if loader.dataset is self._chosen.dataset:
            self._guard(self._restart, batches, loader)

    def _restart(self, batches, loader):
        if self._batches is not None:
            self._measure_memory()
        turn, self._batches = self._turn, batches
        left = getattr(batches.inner, "_sampler_iter", None)
        end_workers(batches.inner)
        self.figures[turn.index] = Figures()
        batches.turn = turn.index
        try:
            if turn.alone_seconds > 0:
                with self._unwatched():
                    take_alone(loader, turn, self.figures[turn.index])
            self._opened = clock()
            batches.inner = self._open(loader, turn, left)
        except Exception:
            with self._unwatched():
                batches.inner = loader._get_iterator()  # the script goes on
            raise

    def _measure_memory(self):
        if self._batches is None or self._batches.turn not in self.figures:
            return
        processes = getattr(self._batches.inner, "_workers", None)
        if not processes:
            return
        own = [private_bytes(process.pid) for process in processes]
        if all(own):
            self.figures[self._batches.turn].bytes_per_worker = sum(own) / len(own)


def whole_cycles(batches, workers):
    """True if each of the workers made as many of these batches, and enough for a rate."""
    return batches >= CYCLES * workers and batches % max(1, workers) == 0


def take_alone(loader, turn, figures):
    """Takes batches of an epoch of its own for some time."""
    start = since = last = clock()
    skipped = max(1, turn.ahead)  # made while the workers started
    taken, samples = 0, 0
    batches = open_loader(loader, turn)
    while last - start < turn.alone_seconds or taken < skipped + 3 or not whole_cycles(taken - skipped, turn.workers):
        batch = next(batches, None)
        if batch is None:
            break
        taken, last = taken + 1, clock()
        if taken <= skipped:
            since = last
        else:
            samples += samples_in(batch)
    end_workers(batches)
    if samples > 0:
        figures.alone_samples_per_s = samples / (last - since)


def open_loader(loader, turn, left=None):
    """Returns an iterator of the loader with the workers of the turn. `left`: the indices to use."""
    changed = {
        "num_workers": turn.workers,
        "prefetch_factor": turn.prefetch if turn.workers > 0 else None,
        "persistent_workers": False,
    }
    if turn.workers == 0:
        changed["timeout"] = 0
    if left is not None and not isinstance(loader.dataset, IterableDataset):
        sampler = "batch_sampler" if loader.batch_sampler is not None else "sampler"
        changed[sampler] = Continued(left)
    own = {name: loader.__dict__[name] for name in changed}
    loader.__dict__.update(changed)  # DataLoader refuses setattr
    try:
        return loader._get_iterator()
    finally:
        loader.__dict__.update(own)


def end_workers(iterator):
    end = getattr(iterator, "_shutdown_workers", None)
    if end is not None:
        end()


def private_bytes(pid):
    """Returns 0 if unknown."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return 1024 * sum(int(line.split()[1]) for line in file if line.startswith("Private_"))
    except OSError:
        return 0


def free_shared_memory():
    try:
        stat = os.statvfs("/dev/shm")
    except OSError:
        return float("inf")
    return stat.f_bavail * stat.f_frsize
