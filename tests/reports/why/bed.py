# SPDX-License-Identifier: Apache-2.0
"""The test bed of `answer.why`: real ranks of PyTorch on two cores, with culprits of known cost.

bed.py culprits|healthy|gains [NAME...] [--rounds N] [--repeat N] [--out DIR]

culprits    the part that is named, beside the injected seconds
healthy     the largest part of scripts without a culprit
gains       the predicted step of a change, beside the measured step of the changed script

Injected seconds are what the script measured of itself within the same runs (`own`), or the difference between the
script with and without the culprit, by its stopwatch, without howmany, in turns."""

import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile

BIN = pathlib.Path(os.environ.get("HOWMANY_BIN", "build/release/bin"))
PYTHON = os.environ.get("HOWMANY_TORCH_PYTHON", sys.executable)
SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples" / "pytorch"
WARMUP = 0.25  # of the steps


@dataclasses.dataclass
class Culprit:
    part: str
    options: str
    own: str = ""  # name of the stopwatch
    also_on_one: bool = False  # less what one device spends
    without: str | None = None  # options of the same script without it
    of: str = "step"  # two ranks less those without it; `lost`: and less the same of one; `exchange`: less both alone
    rate: str = ""  # of the link
    wire_s: float = 0  # of the gradients, at that rate
    steps: int = 60  # of a run without howmany

    def command(self):
        return command_of(self.options, self.rate)


CULPRITS = {
    "slow_loader": Culprit("data", "--slow-sample 0.0001", own="data"),
    "slow_loader_2_workers": Culprit("data", "--slow-sample 0.002 --workers 2", without="--workers 2"),
    "slow_rank": Culprit("slowest", "--slow-rank 0.02", own="forward"),
    "slow_in_turn": Culprit("slowest", "--slow-turns 0.02", own="forward"),
    "uneven": Culprit("slowest", "--uneven 0.03", own="forward", also_on_one=True),
    "slow_link": Culprit("exchange", "--width 160", rate="100mbit", wire_s=317_480 * 8 / 100e6),
    "tiny_parameters": Culprit("machinery", "--tiny-parameters 10000", without="", of="lost", steps=30),
    "tiny_batch": Culprit("exchange", "--batch 2 --width 1024 --tokens 32", of="exchange", steps=100),
    "threads": Culprit("compute", "--layers 30 --width 64 --threads 4", without="--layers 30 --width 64"),
    "log": Culprit("outside", "--log-norms --tiny-parameters 200", own="log"),
    "validation": Culprit("outside", "--validate-every 20", own="validate"),
    "checkpoint": Culprit("outside", "--save-every 50 --frozen-mb 150", own="save"),
    "find_unused": Culprit("machinery", "--blocks 1000 --find-unused", without="--blocks 1000"),
    "unused": Culprit("exchange", "--unused-mb 8 --find-unused", without=""),
    "short_epochs": Culprit("epochs", "--epoch-steps 10 --workers 2", own="epochs"),
}


@dataclasses.dataclass
class Gain:
    options: str
    changed: str
    rate: str = ""
    steps_of_changed: float = 1  # that train the samples of one step


GAINS = {
    "more_workers": Gain("--slow-sample 0.0002", "--slow-sample 0.0002 --workers 2"),
    "persistent_workers": Gain("--epoch-steps 10 --workers 2", "--epoch-steps 10 --workers 2 --persistent"),
    "fewer_threads": Gain("--layers 30 --width 64 --threads 4", "--layers 30 --width 64 --threads 1"),
    "bf16_gradients": Gain("", "--bf16", rate="100mbit"),
    "larger_batch": Gain("--batch 8 --width 1024", "--batch 16 --width 1024", steps_of_changed=0.5),
    "less_outside": Gain("--log-norms --tiny-parameters 200", "--tiny-parameters 200"),
    "equal_ranks": Gain("--slow-rank 0.02", ""),
    "bucket_view": Gain("--batch 8 --width 1024", "--batch 8 --width 1024 --bucket-view"),
    "more_buckets": Gain("--width 512 --tokens 16 --layers 4", "--width 512 --tokens 16 --layers 4 --bucket-cap 1",
                         rate="1gbit"),
    "fewer_buckets": Gain("--bucket-cap 0.001 --blocks 100", "--blocks 100"),
}

HEALTHY = {
    **{kind: [SCRIPTS / "healthy.py", kind] for kind in ("mlp", "conv", "transformer", "manual", "accumulation")},
    "train_ddp": [EXAMPLES / "train_ddp.py"],
}


def command_of(options, rate="", ranks="{n}"):
    linked = [PYTHON, SCRIPTS / "linked.py", rate, ranks] if rate else []
    return [*linked, PYTHON, SCRIPTS / "culprit.py", *options.split()]


class Runs:
    """`folder`: what howmany left, and for each world the records of the stopwatches."""

    def __init__(self, folder):
        self.folder = folder
        files = list((folder / "stopwatch").glob("*.json"))
        self.ranks = {world: [json.loads(path.read_text()) for path in files if path.name.startswith(f"{world}.")]
                      for world in (1, 2)}
        self.summary = json.loads((folder / "summary.json").read_text())

    @property
    def counts(self):
        return (self.summary["answer"].get("why") or {"counts": []})["counts"]

    @property
    def two(self):
        return next((count for count in self.counts if count["devices"] == 2), None)

    def own(self, name, world=2):
        """The mean over steps of the most that a rank spent, in the runs that were not just tries."""
        runs = of_runs(self.ranks[world], world)
        lengths = [min(len(rank["steps"]) for rank in run) for run in runs]
        seconds = []
        for run, steps in zip(runs, lengths):
            if steps < max(lengths) / 2:
                continue
            spent = [rank["named"].get(name, {}) for rank in run]
            seconds += [max(rank.get(str(step), 0) for rank in spent) for step in range(int(steps * WARMUP), steps)]
        if not any(seconds):
            raise RuntimeError(f"no {name} in a run of {world} ranks")
        return statistics.mean(seconds)


def of_runs(ranks, world):
    """Ranks of a run have about the same steps at the same time; they ended in the order of the runs."""
    ordered = sorted(ranks, key=lambda rank: (rank["ended"], rank["rank"]))
    return [ordered[i : i + world] for i in range(0, len(ordered) // world * world, world)]


def howmany(folder, command, rounds, *options):
    shutil.rmtree(folder, ignore_errors=True)
    own = folder.parent / f"{folder.name}.stopwatch"
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    arguments = [BIN / "howmany", "gpus", "--devices", "cpu:0,cpu:1", "--oversubscribe", "--rounds", rounds,
                 "--time-budget", 60 * rounds, "--out", folder, *options, "--", *command]
    done = subprocess.run([str(word) for word in arguments], capture_output=True, text=True, timeout=900, check=False,
                          env={**os.environ, "STOPWATCH": str(own)})
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()[-2000:]}")
    own.rename(folder / "stopwatch")
    (folder / "stdout.txt").write_text(done.stdout)
    return Runs(folder)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def step_without_howmany(options, world, steps, together=True):
    """The median step of rank 0 by its own stopwatch. Each rank is on a core of its own. Ranks that are not `together`
    train by themselves, at the same time."""
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="hm_bed_") as folder:
        place = {**os.environ, "STOPWATCH": folder, "OMP_NUM_THREADS": "1", "TMPDIR": folder, "WORLD_SIZE": str(world),
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        started = []
        for rank in range(world):
            of_rank = {"RANK": str(rank), "LOCAL_RANK": str(rank)} if together and world > 1 else {}
            command = ["taskset", "-c", cores[rank], *command_of(options), "--steps", steps]
            started.append(subprocess.Popen([str(word) for word in command], env={**place, **of_rank},
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        if any([one.wait(300) for one in started]):
            raise RuntimeError(f"{options}: failed without howmany")
        seconds = json.loads(next(pathlib.Path(folder).glob("?.0.*.json")).read_text())["steps"]
        return statistics.median(seconds[int(len(seconds) * WARMUP) :])


def in_turns(repeat, *measurements):
    """The medians of the differences to the first of them."""
    rounds = [[measure() for measure in measurements] for _ in range(repeat)]
    return [statistics.median(values) for values in zip(*rounds)]


def injected(culprit, runs, repeat):
    if culprit.own:
        return runs.own(culprit.own) - (runs.own(culprit.own, 1) if culprit.also_on_one else 0)
    if culprit.wire_s:
        return culprit.wire_s
    c = culprit

    def step(options, world, together=True):
        return lambda: step_without_howmany(options, world, c.steps, together)

    if c.of == "exchange":
        measurements = [step(c.options, 2), step(c.options, 2, together=False)]
    else:
        measurements = [step(c.options, 2), step(c.without, 2)]
    if c.of == "lost":
        measurements += [step(c.options, 1), step(c.without, 1)]
    medians = in_turns(repeat, *measurements)
    lost = medians[2] - medians[3] if c.of == "lost" else 0
    return medians[0] - medians[1] - lost


def shown(seconds):
    return f"{seconds * 1e3:8.2f}"


def parts_text(count):
    parts = ", ".join(f"{part['part']} {part['seconds'] * 1e3:.2f}±{part['error_s'] * 1e3:.2f}"
                      for part in count["parts"])
    refused = f"; refused: {count['refused']}" if count["refused"] else ""
    return f"step {count['step_s'] * 1e3:.1f}, ideal {count['ideal_s'] * 1e3:.1f}: {parts}{refused}"


def show_culprit(name, options):
    culprit = CULPRITS[name]
    runs = howmany(options.out / name, culprit.command(), options.rounds)
    truth = injected(culprit, runs, options.repeat)
    count = runs.two
    if count is None:
        return print(f"{name:22} no evidence", flush=True)
    part = max(count["parts"], key=lambda one: one["seconds"])
    good = part["part"] == culprit.part and abs(part["seconds"] / truth - 1) < 0.15
    print(f"{'' if good else '!':1} {name:22} {culprit.part:9} {part['part']:9} {shown(part['seconds'])} "
          f"{shown(truth)} {part['seconds'] / truth:6.2f} load {os.getloadavg()[0]:.1f} | {parts_text(count)}",
          flush=True)


def show_healthy(name, options):
    runs = howmany(options.out / f"healthy_{name}", [PYTHON, *HEALTHY[name]], options.rounds)
    count = runs.two
    if count is None:
        return print(f"{name:14} no evidence", flush=True)
    part = max(count["parts"], key=lambda one: one["seconds"])
    share = part["seconds"] / count["step_s"]
    print(f"{'!' if share > 0.05 else '':1} {name:14} {part['part']:9} {share:6.1%} "
          f"load {os.getloadavg()[0]:.1f} | {parts_text(count)}", flush=True)


def show_gain(name, options):
    gain = GAINS[name]
    tried = ["--try"] if options.tries else []
    runs = howmany(options.out / f"gain_{name}", command_of(gain.options, gain.rate), options.rounds, *tried)
    changed = howmany(options.out / f"gain_{name}_changed", command_of(gain.changed, gain.rate), options.rounds)
    count, after = runs.two, changed.two
    if count is None or after is None:
        return print(f"{name:20} no evidence", flush=True)
    found = next((one for one in count["help"] if one["what"] == name), None)
    predicted = count["step_s"] - (found["gain_s"] if found else 0)
    measured = after["step_s"] * gain.steps_of_changed
    off = (predicted - measured) / count["step_s"]
    print(f"{'!' if abs(off) > 0.05 else '':1} {name:20} step {shown(count['step_s'])} predicted {shown(predicted)} "
          f"measured {shown(measured)} off {off:6.1%} {found['evidence'] if found else 'not offered'} "
          f"load {os.getloadavg()[0]:.1f} | {', '.join(one['what'] for one in count['help'])}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["culprits", "healthy", "gains"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=3, help="of the runs without howmany")
    parser.add_argument("--try", dest="tries", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("bed-out"))
    options = parser.parse_args()
    rows, show = {"culprits": (CULPRITS, show_culprit), "healthy": (HEALTHY, show_healthy),
                  "gains": (GAINS, show_gain)}[options.what]
    for name in options.names or rows:
        try:
            show(name, options)
        except (ArithmeticError, RuntimeError, subprocess.SubprocessError, StopIteration) as problem:
            print(f"! {name:22} {problem}", flush=True)


if __name__ == "__main__":
    main()
