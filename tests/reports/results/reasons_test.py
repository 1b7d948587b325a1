# SPDX-License-Identifier: Apache-2.0
"""Tests that the reason codes are documented and in the schema."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
QUESTIONS_IN_SCHEMA = ("gpus", "workers")


def codes():
    """Returns the codes of core/base/schema/reasons.h by the question that its comments name."""
    found, questions = {}, ()
    for line in (ROOT / "core/base/schema/reasons.h").read_text().splitlines():
        if re.fullmatch(r"// (\w+, )*\w+", line):
            questions = line[3:].split(", ")
        elif match := re.search(r'k\w+ = "([a-z_]+)";', line):
            for question in questions:
                found.setdefault(question, set()).add(match.group(1))
    return found


class Reasons(unittest.TestCase):
    def test_every_code_is_documented(self):
        documented = set(re.findall(r"`([a-z_]+)`", (ROOT / "reports/README.md").read_text()))
        for question, names in codes().items():
            self.assertGreater(len(names), 3, question)
            self.assertLessEqual(names, documented, question)

    def test_the_schema_lists_exactly_the_codes(self):
        schema = (ROOT / "reports/summary.schema.json").read_text()
        listed = [set(re.findall(r'"([a-z_]+)"', text)) for text in re.findall(r'"reason": \{"enum": \[(.*?)\]', schema, re.S)]
        self.assertEqual(listed, [codes()[question] for question in QUESTIONS_IN_SCHEMA])


if __name__ == "__main__":
    unittest.main()
