#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts habits that make English hard to read, in comments, strings and documents, and fails if there are more than the
limit of a folder. A limit only ever goes down: `check_words.py --list FOLDER` shows the places."""
import argparse
import pathlib
import re
import subprocess
import sys

# Write instead: subject, verb, object; conditions with `if`; nouns instead of relative clauses; the field's term.
HABITS = {
    "told, tells": r"\b(told|tells?|telling|(is|are|be) said)\b",
    "asked of, asked for": r"\b(is|are|was|were|be) asked\b|\basks? (of|for|nothing)\b",
    "who, nobody": r"\b(who|whom|whoever|whose|nobody)\b",
    "beside": r"\bbeside\b",
    "stands, lies": r"\b(stands?|stood|lies|lain)\b",
    "what is, what they": r"\b[Ww]hat (is|are|was|were|it|they|this|these|those|there|others|nothing|has|have|had|one)\b",
    "a sentence that begins with Of, What, Whether, Where": r"(^|[.:;] )(Of|What|Whether|Where|Those|Who) [a-z]",
    "so many, so much": r"\bso (many|much|few)\b",
}
# Most habits in a folder, per 10,000 words. The aim is 15.
LIMITS = {"core": 15, "parallel": 20, "benches": 20, "reports": 27, "tests": 23, "scripts": 20, "docs": 13, "": 15}
KINDS = {".h", ".cpp", ".cu", ".cuh", ".py", ".md", ".cmake", ".txt", ""}


def prose_of(line, suffix):
    if suffix == ".md":
        return line
    strings = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
    comment = re.search(r"(?://|#)\s?(.*)$", line)
    return " ".join(strings + ([comment[1]] if comment and not line.lstrip().startswith("#include") else []))


def folder_of(path):
    return path.parts[0] if path.parts[0] in LIMITS else ""


def read(root):
    """(path, line number, prose) of each line of each file in git."""
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        sys.exit(f"not checked: {root} is no git checkout")
    names = listed.stdout
    for path in map(pathlib.PurePath, names.splitlines()):
        # Recorded output keeps its words; this file lists the habits.
        if path.suffix not in KINDS or "results" in path.parts or path.name in ("LICENSE", "check_words.py"):
            continue
        if (root / path).is_file():
            for number, line in enumerate((root / path).read_text(errors="replace").splitlines(), 1):
                yield path, number, prose_of(line, path.suffix)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", default=".")
    parser.add_argument("--list", metavar="FOLDER", help="print the habits of a folder")
    args = parser.parse_args()
    words, habits = dict.fromkeys(LIMITS, 0), dict.fromkeys(LIMITS, 0)
    for path, number, prose in read(pathlib.Path(args.root).resolve()):
        folder = folder_of(path)
        words[folder] += len(prose.split())
        for name, pattern in HABITS.items():
            if found := len(re.findall(pattern, prose)):
                habits[folder] += found
                if args.list is not None and str(path).startswith(args.list):
                    print(f"{path}:{number}: [{name}] {prose.strip()[:100]}")
    failed = False
    for folder, limit in LIMITS.items():
        rate = 1e4 * habits[folder] / max(1, words[folder])
        failed |= rate > limit
        print(f"{folder or 'the rest'}: {habits[folder]} habits in {words[folder]} words, {rate:.0f} per 10,000 "
              f"(limit {limit})")
    return failed


if __name__ == "__main__":
    sys.exit(main())
