# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 120
"""`howmany help`, `howmany version` and the man page."""
import os
import re
import shutil
import subprocess

import programs

TOPICS = ("method", "output", "exit-codes", "environment")
COMMANDS = ("run", "gpus", "workers", "backend", "transfer", "predict", "cluster", "train", "devices", "memory", "report", "selftest",
            "compare", "gate", "history", "completion", "help", "version")
PARTS = ("compiler", "build type", "oneDNN", "gloo", "MPI", "NCCL", "CUDA", "cuDNN", "CUPTI")


def howmany(*arguments):
    return programs.run("howmany", *arguments)


class Help(programs.TestCase):
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

    def test_is_a_command_too(self):
        self.assertEqual(howmany("version").out, howmany("--version").out)


class ManPage(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.page = self.folder / "howmany.1"
        done = howmany("help", "--man")
        self.assertEqual(done.code, 0, done)
        self.page.write_text(done.out)

    def rendered(self):
        done = self.run_tool("man", "--warnings", "-l", self.page)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def run_tool(self, *command):
        if not shutil.which(command[0]):
            self.skipTest(f"{command[0]} is missing")
        return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "100", "PAGER": "cat", "MANPAGER": "cat"})

    def test_groff_warns_of_nothing(self):
        done = self.run_tool("groff", "-man", "-ww", "-z", "-Tutf8", self.page)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_mandoc_warns_of_nothing(self):
        done = self.run_tool("mandoc", "-Tlint", "-Wwarning", self.page)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_has_every_command_option_and_topic(self):
        text = self.rendered()
        for command in COMMANDS:
            self.assertIn(f"howmany {command}\n", text)
            listed = re.findall(r"^ +(--[a-z-]+)", howmany(command, "--help").out, re.M)
            self.assertLessEqual(set(listed), set(re.findall(r"--[a-z-]+", text)), command)
        for section in ("METHOD", "FILES", "EXIT STATUS", "ENVIRONMENT"):
            self.assertIn(f"\n{section}\n", text)

    def test_prints_text_as_it_is(self):
        """What roff could take for its own: quotes, minus signs, backslashes."""
        text = self.rendered()
        self.assertIn('{"commit", "date"', text)
        self.assertIn("source <(howmany completion bash)", text)


if __name__ == "__main__":
    programs.main()
