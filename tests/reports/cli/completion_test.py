# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only
# timeout: 180
"""Tests completion scripts in real shells: they offer every option that --help lists, fixed choices and paths."""
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import threading
import unittest

import programs

COMMANDS = ("run", "gpus", "why", "workers", "backend", "transfer", "train", "devices", "report", "selftest", "compare",
            "gate", "history", "completion", "help")
# Runs the completion function as readline does: sets the words and the index of the word to
# complete.
BASH_DRIVER = """source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _howmany
for word in "${COMPREPLY[@]}"; do printf '%s\\n' "$word"; done"""
# Its Tab key logs the words that would be inserted, and ends the shell.
ZSH_RC = r"""PS1= RPS1= PROMPT_EOL_MARK= LISTMAX=10000
fpath=($ZDOTDIR $fpath); autoload -Uz compinit; compinit -u -D; cd $ZDOTDIR
compadd() {
  if (($@[(I)-O] + $@[(I)-A] + $@[(I)-D])); then builtin compadd "$@"; return; fi
  local -a found; builtin compadd -O found "$@"; print -rl -- $found >> $ZDOTDIR/offered; builtin compadd "$@"
}
tab() { zle complete-word; BUFFER=exit; zle accept-line }
zle -N tab; bindkey '^I' tab
print -n rea; print dy"""


# The scripts call the howmany of PATH.
PATH = f"{programs.BIN}:{os.environ['PATH']}"


def on_terminal(argv, keys, folder, **environment):
    """Types `keys` into an interactive shell once it printed `ready`, and waits for its end."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(argv[0], list(map(str, argv)), {**os.environ, "PATH": PATH, "TERM": "vt100", **environment})
    killer = threading.Timer(30, os.kill, [pid, signal.SIGKILL])
    killer.start()
    seen = b""
    try:
        while b"ready" not in seen:
            seen += os.read(terminal, 4096)
        os.write(terminal, keys.encode())
        while os.read(terminal, 4096):
            pass
    except OSError:  # the shell has ended
        pass
    killer.cancel()
    os.close(terminal)
    os.waitpid(pid, 0)


def needs(shell):
    return unittest.skipUnless(shutil.which(shell), f"{shell} is missing")


class Completion(programs.TestCase):
    shell = "bash"

    def setUp(self):
        super().setUp()
        self.script = self.folder / {"bash": "howmany", "zsh": "_howmany", "fish": "howmany.fish"}[self.shell]
        done = programs.run("howmany", "completion", self.shell)
        self.assertEqual(done.code, 0, done)
        self.script.write_text(done.out)

    def listed(self, command):
        """Returns the long options in the help of a command."""
        done = programs.run("howmany", command, "--help")
        self.assertEqual(done.code, 0, done)
        return set(re.findall(r"^ +(?:-\w,)?(--[a-z-]+)", done.out, re.M))

    def run_shell(self, *arguments, **more):
        return subprocess.run([*map(str, arguments)], capture_output=True, text=True, timeout=60, cwd=self.folder,
                              env={**os.environ, "PATH": PATH, **more})

    def assert_syntax(self, *command):
        done = self.run_shell(*command, self.script)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Cases:
    """What every shell offers; `offered` is the shell's own."""

    def test_commands(self):
        self.assertLessEqual(set(COMMANDS), set(self.offered("howmany ")))
        self.assertEqual(self.offered("howmany gp"), ["gpus"])

    def test_every_long_option_of_every_command(self):
        for command in COMMANDS:
            with self.subTest(command):
                self.assertLessEqual(self.listed(command), set(self.offered(f"howmany {command} --")))

    def test_options_without_a_command_are_those_of_run(self):
        self.assertLessEqual(self.listed("run") | {"--version"}, set(self.offered("howmany --")))

    def test_fixed_choices(self):
        for line, expected in (("howmany workers --worker-type ", {"threads", "processes", "pytorch"}),
                               ("howmany gpus --precision ", {"f32", "tf32", "bf16"}),
                               ("howmany train --precision ", {"f32", "tf32", "bf16"}),
                               ("howmany run --preset ", {"quick", "full"}),
                               ("howmany completion ", {"bash", "zsh", "fish"})):
            with self.subTest(line):
                self.assertEqual(set(self.offered(line)), expected)

    def test_names_that_the_bench_knows(self):
        self.assertLessEqual({"mlp", "resnet18"}, set(self.offered("howmany gpus --model ")))
        self.assertLessEqual({"local", "gloo", "auto"}, set(self.offered("howmany train --backend ")))
        self.assertLessEqual({"method", "gpus"}, set(self.offered("howmany help ")))

    def test_forms_of_a_proposal(self):
        self.assertLessEqual({"slurm", "proposal", "proposal=csc"}, set(self.offered("howmany report --emit ")))

    def test_an_option_of_text_offers_nothing(self):
        self.assertEqual(self.offered("howmany gpus --rounds "), [])


class Bash(Cases, Completion):
    def offered(self, line):
        words = line.split(" ")
        done = self.run_shell("bash", "--norc", "-c", BASH_DRIVER, "driver", self.script, *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_syntax(self):
        self.assert_syntax("bash", "-n")

    def test_values_after_an_equals_sign(self):
        self.assertEqual(self.offered("howmany workers --worker-type = py"), ["pytorch"])
        self.assertEqual(self.offered("howmany workers --worker-type ="), ["threads", "processes", "pytorch"])

    def test_lists_go_on_after_a_comma(self):
        self.assertEqual(self.offered("howmany gpus --mode ddp,pipe"), ["ddp,pipeline"])

    def test_nothing_on_the_line_is_evaluated(self):
        for word in ("$(touch hit)", "`touch hit`", "a[$(touch hit)]", "';touch hit;'"):
            for line in ([word], ["gpus", word], ["gpus", word, ""], ["gpus", "--mode", word], ["help", word]):
                self.run_shell("bash", "--norc", "-c", BASH_DRIVER, "driver", self.script, "howmany", *line)
        self.assertFalse((self.folder / "hit").exists())

    def test_paths_on_a_terminal(self):
        (self.folder / "results").mkdir()
        (self.folder / "restful.json").touch()
        self.assertIn("gpus --out results/ end", self.typed("gpus --out res\t end"))
        self.assertIn("compare restful.json end", self.typed("compare rest\tend"))

    def typed(self, keys):
        """The arguments of `howmany` that an interactive bash makes of these keys."""
        rc = self.folder / "rc"
        rc.write_text(f'source {self.script}; howmany() {{ printf "%s " "$@" > typed; exit; }}; PS1=ready')
        on_terminal(["bash", "--noprofile", "--rcfile", rc, "-i"], f"howmany {keys}\n", self.folder)
        return (self.folder / "typed").read_text()


@needs("fish")
class Fish(Cases, Completion):
    shell = "fish"

    def offered(self, line):
        done = self.run_shell("fish", "--no-config", "-c", f"source {self.script}; complete -C '{line}'",
                              HOME=str(self.folder))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [found.split("\t")[0] for found in done.stdout.splitlines()]

    def test_syntax(self):
        self.assert_syntax("fish", "-n")

    def test_paths(self):
        (self.folder / "results").mkdir()
        (self.folder / "restful.json").touch()
        self.assertEqual(self.offered("howmany gpus --out res"), ["results/"])
        self.assertEqual(self.offered("howmany compare rest"), ["restful.json"])


@needs("zsh")
class Zsh(Cases, Completion):
    shell = "zsh"

    def offered(self, line):
        log = self.folder / "offered"
        log.write_text("")
        (self.folder / ".zshrc").write_text(ZSH_RC)
        on_terminal(["zsh", "-d", "-i"], f"{line}\t", self.folder, ZDOTDIR=str(self.folder))
        return list(dict.fromkeys(filter(None, log.read_text().splitlines())))

    def test_syntax(self):
        self.assert_syntax("zsh", "-n")

    def test_paths(self):
        (self.folder / "results").mkdir()
        (self.folder / "restful.json").touch()
        self.assertEqual(self.offered("howmany gpus --out res"), ["results"])
        self.assertEqual(self.offered("howmany compare rest"), ["restful.json"])


class Programs(programs.TestCase):
    def test_a_missing_program_leaves_the_other_commands(self):
        for line, expected in ((("gpus", "--batch-p"), "--batch-per-device\t"), (("train", "--"), "")):
            done = programs.run("howmany", "__complete", *line, HOWMANY_BENCH_DIR=str(self.folder))
            self.assertEqual((done.code, done.err), (0, ""))
            self.assertEqual(done.out[:len(expected) or None], expected)

    def test_help_follows_a_name(self):
        done = programs.run("howmany", "__complete", "ga")
        self.assertRegex(done.out, r"^gate\t\S.*\n$")

    def test_the_users_own_command_takes_files(self):
        self.assertEqual(programs.run("howmany", "__complete", "gpus", "--", "python", "tr").out, ":files\n")

    def test_train_describes_its_options(self):
        described = programs.run("howmany-train", "--describe-options").json()
        names = {name for option in described["options"] for name in option["names"]}
        self.assertLessEqual({"--model", "--epochs", "--help"}, names)
        self.assertNotIn("--describe-options", json.dumps(described))

    def test_an_unknown_shell_is_refused(self):
        self.assert_refused(programs.run("howmany", "completion", "tcsh"), "tcsh")


if __name__ == "__main__":
    programs.main()
