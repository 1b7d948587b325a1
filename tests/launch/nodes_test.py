# SPDX-License-Identifier: Apache-2.0
# labels: slurm process kill
# timeout: 600
"""`howmany gpus` on the login node of a real Slurm job of two hosts: our models, and that nothing of it is left."""

import os
import random
import signal
import time

import programs
from allocation import Allocation

KILLS = int(os.environ.get("HOWMANY_KILLS", "100" if programs.NIGHTLY else "4"))
MODEL = ["--model", "simple_net", "--mode", "ddp", "--backend", "gloo"]
ENDS = 20  # seconds


class Nodes(Allocation):
    def check_rows(self, result):
        self.assertEqual(result.code, 0, result)
        self.assertEqual(result.json(), self.summary())
        self.assertEqual(set(self.rows()), {(1, 1), (2, 2)})
        table = result.json()["answer"]["gpus"]["table"]
        self.assertEqual({(row["nodes"], row["devices"]) for row in table}, {(1, 1), (2, 2)})
        self.assertTrue(all(row["valid"] for row in table), table)

    def test_measures_whole_nodes_from_the_login_node(self):
        self.check_rows(self.howmany(*MODEL, "--json"))
        nodes = self.summary()["context"]["howmany_request"]["nodes"]
        self.assertEqual((nodes["names"], nodes["environment"]), (self.hosts.names, []))

    def test_measures_them_within_a_step_on_any_node(self):
        for host in self.hosts.names:
            with self.subTest(host):
                self.out = self.folder / host
                self.check_rows(self.howmany(*MODEL, "--json", before=["srun", "--overlap", "-n1", "-N1", "-w", host]))

    def test_more_nodes_than_the_job_has_are_refused(self):
        result = self.howmany(*MODEL, nodes=9)
        self.assertEqual(result.code, 2, result)
        self.assertIn("there are 2 nodes", result.err)

    def test_starting_it_on_each_node_is_refused(self):
        result = self.howmany(*MODEL, before=["srun", "--overlap", "-n2", "-N2"])
        self.assertEqual(result.code, 2, result)
        self.assertIn("srun started this command 2 times", result.err)

    def test_a_host_name_of_the_loopback_interface(self):
        name = self.hosts.names[1]
        file = self.hosts.hosts_file(name)
        before = file.read_text()
        self.addCleanup(file.write_text, before)
        file.write_text(f"127.0.1.1 {name}\n{before}")
        self.check_rows(self.howmany(*MODEL, "--json"))
        nodes = self.summary()["context"]["howmany_request"]["nodes"]
        self.assertEqual(nodes["environment"], ["GLOO_SOCKET_IFNAME=eth0"])

    def test_a_node_without_the_program_is_named(self):
        self.mount_on(self.hosts.names[1], "-t", "tmpfs", "none", target=programs.BIN.resolve())
        result = self.howmany(*MODEL)
        self.assertEqual(result.code, 2, result)
        self.assertIn(f"{self.hosts.names[1]} did not answer", result.err)

    @programs.nightly  # it takes a minute
    def test_a_node_that_does_not_answer_is_named(self):
        slurmd = self.hosts.slurmd[self.hosts.names[1]]
        slurmd.send_signal(signal.SIGSTOP)
        try:
            start = time.monotonic()
            result = self.howmany(*MODEL)
            self.assertLess(time.monotonic() - start, 75)
        finally:
            slurmd.send_signal(signal.SIGCONT)
        self.assertEqual(result.code, 2, result)
        self.assertIn(f"{self.hosts.names[1]} did not answer", result.err)
        self.assert_all_ended()


class Measuring(Allocation):
    def start_measuring(self):
        self.out = self.folder / f"out{time.monotonic_ns()}"
        return self.start(*self.gpus(*MODEL, rounds=9, seconds=30))

    def check_failed(self, process):
        start = time.monotonic()
        result = self.result(process, 120)
        print(f"  ended after {time.monotonic() - start:.1f} s", flush=True)
        self.assertEqual(result.code, 3, result)
        self.assertTrue(self.rows()[2, 2]["flags"], result)

    def wait_for_ranks(self):
        """Returns a rank on the second host."""
        return self.wait_until("ranks", lambda: self.running("speedup_bench", self.hosts.names[1]))


class Ends(Measuring):
    def test_nothing_is_left_after_a_signal_at_any_time(self):
        for i in range(KILLS):
            end = (signal.SIGKILL, signal.SIGTERM)[i % 2]
            delay = random.uniform(0, 6)
            with self.subTest(i=i, signal=end, delay=delay):
                process = self.start_measuring()
                time.sleep(delay)
                self.assertIsNone(process.poll())
                process.send_signal(end)
                start = time.monotonic()
                process.communicate(timeout=30)
                self.assert_all_ended(ENDS)
                print(f"  {end.name} after {delay:.1f} s: {time.monotonic() - start:.1f} s", flush=True)

    def test_nothing_is_left_if_the_command_on_the_first_node_is_killed(self):
        process = self.start_measuring()
        self.wait_for_ranks()
        os.kill(self.running("howmany", self.hosts.names[0]), signal.SIGKILL)
        self.assertNotEqual(self.result(process, 30).code, 0)
        self.assert_all_ended(ENDS)

    def test_a_killed_rank_is_a_failed_measurement(self):
        process = self.start_measuring()
        os.kill(self.wait_for_ranks(), signal.SIGKILL)
        self.check_failed(process)
        self.assert_all_ended(ENDS)


class LostHosts(Measuring):
    """Slurm does not see that slurmstepd is killed, so it may show a step that has ended."""

    @programs.nightly  # it takes two minutes
    def test_a_host_that_loses_its_processes_and_then_slurmd(self):
        lost = self.hosts.names[1]
        for end in (self.hosts.kill_processes_on, self.hosts.kill_slurmd):
            with self.subTest(end.__name__):
                process = self.start_measuring()
                self.wait_for_ranks()
                end(lost)
                self.hosts.kill_processes_on(lost)
                self.check_failed(process)
                self.wait_until_ended(ENDS)


programs.main()
