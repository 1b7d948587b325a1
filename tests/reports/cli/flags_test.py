# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only quick
"""Tests that a flag has one meaning and one help text in every program, those of core/base/schema/flags.inc."""
import json
import pathlib
import re
import unittest

import programs

DICTIONARY = pathlib.Path(__file__).resolve().parents[3] / "core" / "base" / "schema" / "flags.inc"
WORDS = 10  # the maximum of a help text


def dictionary():
    lines = re.findall(r'^HM_FLAG\(\w+, "(--[a-z-]+)", "(.*?)", "(.+)"\)$', DICTIONARY.read_text(), re.MULTILINE)
    return [(name, help_text) for name, _, help_text in lines]


def without_default(help_text):
    return re.sub(r" \(default: .*\)$", "", help_text)


def measuring_programs():
    names = (path.name for path in programs.BIN.iterdir())
    return sorted(name for name in names if (name.endswith("_bench") or name in ("howmany-devices", "howmany-train")))


class Flags(programs.TestCase):
    def described(self):
        """Yields (program, option) of every program and command."""
        for name in measuring_programs():
            for option in json.loads(programs.run(name, "--describe-options").out)["options"]:
                yield name, option
        commands = json.loads(programs.run("howmany", "help", "--describe-options").out)
        for command, options in commands.items():
            for option in options:
                yield command, option

    def test_a_name_has_one_help_text(self):
        known = dict(dictionary())
        seen = set()
        for program, option in self.described():
            for name in option["names"]:
                if name in ("--help", "-h"):
                    continue
                self.assertIn(name, known, f"{program} {name} is not in {DICTIONARY.name}")
                self.assertEqual(without_default(option["help"]), known[name], f"{program} {name}")
                seen.add(name)
        self.assertGreater(len(seen), 80)

    def test_help_texts_are_short_phrases(self):
        for name, help_text in dictionary():
            self.assertLessEqual(len(help_text.split()), WORDS, f"{name}: {help_text}")
            self.assertTrue(help_text[0].isupper() and not help_text.endswith("."), f"{name}: {help_text}")

    def test_names_are_sorted_and_unique(self):
        names = [name for name, _ in dictionary()]
        self.assertEqual(names, sorted(set(names)))


if __name__ == "__main__":
    unittest.main()
