# SPDX-License-Identifier: Apache-2.0
# labels: process torch
# timeout: 900
"""The PyTorch hook with ranks on several hosts. Rank 0 alone has the folder of the records."""

import json
import os
import re
import socket
import subprocess
import sys
import types
import unittest
from unittest import mock

import programs
from torch_scripts import PYTHON, SCRIPTS, needs_torch

sys.path.insert(0, str(programs.BIN / "howmany_hook.zip"))

from howmany_hook import place  # noqa: E402

SCRIPT = SCRIPTS / "hosts.py"
ROUNDS = 200 if programs.NIGHTLY else 20
TIMEOUT = 120  # seconds


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Ended:
    def __init__(self, process, timeout=TIMEOUT):
        self.out, self.err = process.communicate(timeout=timeout)
        self.code = process.returncode


class Cores(unittest.TestCase):
    def bound(self, own, local_rank, spans_hosts=True):
        settings = types.SimpleNamespace(cores=[[0, 1], [4, 5]], local_rank=local_rank, spans_hosts=spans_hosts)
        with mock.patch("os.sched_getaffinity", return_value=own), mock.patch("os.sched_setaffinity") as bind, \
                mock.patch.dict("os.environ", {"LOCAL_RANK": str(local_rank)}):
            place.bind(settings)
        return bind.call_args and bind.call_args.args[1]

    def test_the_listed_cores_if_the_job_has_them(self):
        self.assertEqual(self.bound({0, 1, 4, 5, 6}, 1), [4, 5])

    def test_the_same_positions_on_a_host_with_other_cores(self):
        self.assertEqual([self.bound({12, 9, 8, 13}, rank) for rank in range(2)], [[8, 9], [12, 13]])

    def test_not_bound_if_there_are_too_few(self):
        self.assertEqual([self.bound({8, 9, 10}, rank) for rank in range(2)], [[8, 9], None])

    def test_one_host_takes_the_list(self):
        self.assertEqual(self.bound({8, 9}, 1, spans_hosts=False), [4, 5])


LARGE = '''
import datetime, os, random, sys
import torch
from howmany_hook.store import PART, GroupStore
store = torch.distributed.TCPStore("127.0.0.1", 0, None, True)
texts = [random.Random(rank).randbytes(3 * PART).hex() for rank in range(1, 3)]
for rank, text in enumerate(texts, 1):
    GroupStore(store, rank, 4).deliver(text)
found = list(GroupStore(store, 0, 4).records(0.2))  # rank 3 does not come
assert found == [(rank, os.getpid(), text) for rank, text in enumerate(texts, 1)], len(found)
'''


@needs_torch
class Hosts(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "shared" / "out"
        self.out.mkdir(parents=True)
        self.absent = self.folder / "absent"
        self.port = str(free_port())

    def start(self, command, folder, seconds=0.3, **environment):
        env = {**os.environ, "HOWMANY_SCRIPT_OUT": str(folder), "HOWMANY_SCRIPT_SECONDS": str(seconds),
               "OMP_NUM_THREADS": "1", "PYTHONPATH": str(programs.BIN / "howmany_hook.zip"), **environment}
        return self.popen(*command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def rank(self, rank, world, *arguments, host=(), folder=None, local_world=1, **options):
        """One process. Rank 0 has the store. `host`: a command that runs others as on another host."""
        if folder is None:
            folder = self.absent if rank else self.out
        return self.start([*host, PYTHON, SCRIPT, *arguments], folder, RANK=str(rank), WORLD_SIZE=str(world),
                          LOCAL_RANK="0", LOCAL_WORLD_SIZE=str(local_world), MASTER_ADDR="127.0.0.1",
                          MASTER_PORT=self.port, **options)

    def run_ranks(self, world, *arguments, **options):
        return [Ended(one) for one in [self.rank(rank, world, *arguments, **options) for rank in range(world)]]

    def agents(self, *arguments, local_world=1, **options):
        """Two hosts with an agent of torchrun each."""
        started = [
            self.start([PYTHON, "-m", "torch.distributed.run", "--nnodes", 2, "--node-rank", node, "--nproc-per-node",
                        local_world, "--master-addr", "127.0.0.1", "--master-port", self.port, SCRIPT, *arguments],
                       self.absent if node else self.out, **options)
            for node in range(2)]
        return [Ended(one) for one in started]

    def seen(self, ended):
        """What the script printed in each rank."""
        lines = [json.loads(line) for one in ended for line in one.out.splitlines()]
        return sorted(lines, key=lambda line: line["rank"])

    def records(self, folder):
        """By rank: the lines of its only record."""
        found = {}
        for path in folder.glob("rank*"):
            rank = int(re.fullmatch(r"rank(\d+)\.\d+\.jsonl", path.name)[1])
            self.assertNotIn(rank, found)
            found[rank] = [json.loads(line) for line in path.read_text().splitlines()]
        return found

    def check(self, ended, world, complete=True):
        """All ranks ended after the same step, and recorded it. Returns what the script printed."""
        self.assertEqual([one.code for one in ended], [0] * len(ended), "\n".join(one.err for one in ended))
        self.assertNotIn("Traceback", "".join(one.err for one in ended))
        return self.check_records(self.seen(ended), self.out, world, complete)

    def check_records(self, seen, folder, world, complete=True):
        self.assertEqual([one["rank"] for one in seen], list(range(world)))
        self.assertEqual(len({one["steps"] for one in seen}), 1, seen)
        records = self.records(folder)
        self.assertEqual(sorted(records), list(range(world)))
        ends = [lines[-1] for lines in records.values()]
        self.assertEqual({end["complete"] for end in ends}, {complete})
        if complete:
            self.assertEqual(len({(end["first"], end["last"]) for end in ends}), 1, ends)
        for rank, lines in records.items():
            self.assertEqual((lines[0]["kind"], lines[0]["rank"]), ("start", rank))
            self.assertEqual(sum(line["kind"] == "step" for line in lines), seen[0]["steps"])
        self.assertFalse(self.absent.exists())
        self.assertEqual(list(folder.glob("*.tmp")) + list(folder.glob("failed")), [])
        return seen

    def test_ranks_without_torchrun_agree_by_the_store(self):
        seen = self.check(self.run_ranks(3, seconds=1), 3)
        self.assertTrue(seen[0]["shared"])
        self.assertFalse((self.out / "steps.json").exists())
        for one in seen[1:]:
            self.assertGreater(one["first_call_s"], 0.7)

    def test_two_agents_of_torchrun_agree_by_the_store(self):
        seen = self.check(self.agents(local_world=2), 4)
        self.assertTrue(seen[0]["shared"])

    def test_one_host_makes_no_call(self):
        seen = self.check(self.run_ranks(2, folder=self.out, local_world=2), 2)
        self.assertEqual([(one["calls"], one["shared"]) for one in seen], [(0, False)] * 2)
        self.assertTrue((self.out / "steps.json").exists())

    def test_accumulated_gradients(self):
        self.check(self.run_ranks(2, "--passes", 3), 2)

    def test_steps_after_the_last_timed_one(self):
        self.check(self.run_ranks(2, HOWMANY_SCRIPT_DETAIL="3"), 2)

    def test_the_largest_number_of_steps_ends_before_the_time(self):
        self.check(self.run_ranks(2, seconds=600, HOWMANY_SCRIPT_MAX_STEPS="50"), 2)

    def test_a_script_that_ends_by_itself(self):
        for start in (self.run_ranks, self.agents):
            with self.subTest(start.__name__):
                self.port = str(free_port())
                world = (2,) if start == self.run_ranks else ()
                self.check(start(*world, "--steps", 40, seconds=600), 2, complete=False)
                for path in self.out.iterdir():
                    path.unlink()

    def test_a_failure_of_the_hook_on_another_host(self):
        ranks = [self.rank(rank, 2, "--hook-fails") for rank in range(2)]
        self.assertEqual(Ended(ranks[0]).code, 0)
        self.assertIn("ZeroDivisionError", self.records(self.out)[1][-1]["why"])
        self.assertTrue((self.out / "failed").exists())

    def test_rank_0_does_not_wait_after_an_exception(self):
        ranks = [self.rank(rank, 2, "--raises-after", 20, seconds=600) for rank in range(2)]
        first, second = map(Ended, ranks)
        self.assertIn("ValueError: no more data", first.err)
        self.assertIn("no more data", next(self.out.glob("raised.*")).read_text())
        self.assertNotEqual((first.code, second.code), (0, 0))
        self.assertNotIn("howmany_hook/store", first.err + second.err)

    def test_a_store_that_is_gone_delays_nothing(self):
        ranks = [self.rank(rank, 2, seconds=600) for rank in range(2)]
        self.wait_until("the first step", lambda: list(self.out.glob("rank0.*")))
        ranks[0].kill()
        ended = Ended(ranks[1])
        self.assertNotIn("howmany_hook/store", ended.err)

    def named(self, name, *commands):
        """The start of a command that runs on a host of this name, or skips the test."""
        host = ["unshare", "-u", "-m", "sh", "-c", " && ".join([f"hostname {name}", *commands, 'exec "$@"']), "sh"]
        if subprocess.run([*host, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("unshare is not permitted")
        return host

    def test_hosts_with_other_names(self):
        """The folder is that of rank 0, absent, or another of the same name."""
        hide = f"mount -t tmpfs none {self.out.parent}"
        for name, commands in (("shared", []), ("absent", [hide]), ("another", [hide, f"mkdir {self.out}"])):
            with self.subTest(name):
                self.port = str(free_port())
                hosts = [self.named("hm-a"), self.named("hm-b", *commands), self.named("hm-a")]
                ranks = [self.rank(rank, 3, host=hosts[rank], folder=self.out) for rank in range(3)]
                self.check([Ended(one) for one in ranks], 3)
                for path in self.out.iterdir():
                    path.unlink()

    def test_records_larger_than_a_value_of_the_store(self):
        ended = Ended(self.start([PYTHON, "-c", LARGE], ""))
        self.assertEqual(ended.code, 0, ended.err)

    def test_uneven_steps_and_a_slow_rank(self):
        one = Ended(self.start([PYTHON, SCRIPTS / "forked_hosts.py", ROUNDS, self.out], "", seconds=0.1), timeout=800)
        lines = [json.loads(line) for line in one.out.splitlines()]
        self.assertEqual(one.code, 0, one.err)
        for seed in range(ROUNDS):
            with self.subTest(seed):
                of_round = (line for line in lines if line["seed"] == seed)
                *seen, ended = sorted(of_round, key=lambda line: line.get("rank", 3))
                self.assertEqual(ended["codes"], [0, 0, 0], one.err)
                self.check_records(seen, self.out / str(seed), 3)


if __name__ == "__main__":
    programs.main()
