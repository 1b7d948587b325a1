# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only quick
# timeout: 120
"""`howmany --help`, `howmany help` and `howmany --version`."""
import re

import programs

TOPICS = ("method", "output", "exit-codes", "environment")
COMMANDS = ("run", "gpus", "why", "workers", "backend", "transfer", "predict", "cluster", "train", "devices", "memory", "report", "selftest",
            "compare", "gate", "history", "node", "completion", "help")
PARTS = ("compiler", "build type", "oneDNN", "gloo", "MPI", "NCCL", "CUDA", "cuDNN", "CUPTI")


def howmany(*arguments):
    return programs.run("howmany", *arguments)


class Help(programs.TestCase):
    def test_lists_commands_in_groups(self):
        done = howmany("--help")
        self.assertEqual(done.code, 0, done)
        groups = re.findall(r"^([A-Z]\w+):\n((?:  \w.*\n)+)", done.out, re.M)
        listed = {group: re.findall(r"^  (\S+) ", text, re.M) for group, text in groups if group != "Examples"}
        self.assertEqual(list(listed), ["Ask", "Measure", "CI", "More"])
        names = [name for group in listed.values() for name in group]
        self.assertLessEqual(len(names), 16)
        self.assertEqual(set(names), {*COMMANDS} - {"run", "node", "completion"})

    def test_lists_topics_and_commands(self):
        done = howmany("help")
        self.assertEqual(done.code, 0, done)
        names = re.findall(r"^  (\S+) ", done.out, re.M)
        self.assertEqual(set(names), {*TOPICS, *COMMANDS})

    def test_of_a_command_is_its_own_help(self):
        for command in COMMANDS:
            with self.subTest(command):
                done = howmany("help", command)
                self.assertEqual((done.code, done.out), (0, howmany(command, "--help").out))

    def test_of_a_topic_fits_a_terminal(self):
        for topic in TOPICS:
            done = howmany("help", topic)
            self.assertEqual(done.code, 0, done)
            self.assertLessEqual(max(map(len, done.out.splitlines())), 95)

    def test_of_an_unknown_topic_suggests_one(self):
        self.assert_refused(howmany("help", "methd"), "method")

    def test_lists_the_exit_codes(self):
        found = re.findall(r"^  (\d+) ", howmany("help", "exit-codes").out, re.M)
        self.assertEqual(found, ["0", "1", "2", "3", "4", "5", "130"])


class Version(programs.TestCase):
    def test_names_the_commit_and_every_part(self):
        done = howmany("--version")
        self.assertEqual(done.code, 0, done)
        first, *rest = done.out.splitlines()
        self.assertRegex(first, r"^howmany \d+\.\d+\.\d+ \(commit \S+\)$")
        self.assertEqual([line[:12].strip() for line in rest], list(PARTS))
        self.assertTrue(all(line[12:] for line in rest), done)


if __name__ == "__main__":
    programs.main()
