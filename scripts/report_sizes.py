#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the weight of the suite: lines of the product, the tests and the recorded results, flags,
commands of `howmany --help` (if build/release is built) and lines of the README. Then the lengths of
files by folder and kind: a long file is a hint that it may contain a second idea, not an error."""
import pathlib
import re
import statistics
import subprocess
import sys

FOLDERS = ("core", "parallel", "benches", "reports", "scripts", "tests")
KINDS = {".h": "headers", ".cuh": "headers", ".cpp": "sources", ".cu": "sources", ".py": "Python"}


def lengths(root):
    """Returns {(folder, kind): [(lines, path)]} of the files in git."""
    found = {}
    for name in subprocess.run(["git", "ls-files", *FOLDERS], cwd=root, capture_output=True, text=True,
                               check=True).stdout.splitlines():
        path = pathlib.PurePath(name)
        if path.suffix in KINDS and (root / path).is_file():
            lines = len((root / path).read_text().splitlines())
            found.setdefault((path.parts[0], KINDS[path.suffix]), []).append((lines, name))
    return found


def count(root, folders, left_out):
    """Returns the lines of the files in git below the folders, except names that match left_out."""
    names = subprocess.run(["git", "ls-files", *folders], cwd=root, capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return sum((root / name).read_bytes().count(b"\n") for name in names
               if not re.search(left_out, name) and (root / name).is_file())


def commands(root):
    """Returns the number of commands in `howmany --help`, or None if it is not built."""
    program = root / "build/release/bin/howmany"
    if not program.exists():
        return None
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    return len(re.findall(r"^  (?!howmany)[a-z]\S* {2,}\S", text, re.M))


def weight(root):
    flags = (root / "core/base/schema/flags.inc").read_text()
    return {"product (core, parallel, benches, reports, scripts)":
                count(root, ["core", "parallel", "benches", "reports", "scripts"],
                      r"^scripts/studies/|\.(json|jsonl|csv|svg|png)$"),
            "studies": count(root, ["scripts/studies"], "$^"),
            "tests": count(root, ["tests"], "$^"),
            "recorded results": count(root, ["docs/results"], "$^"),
            "flags": len(re.findall(r"^HM_FLAG\(", flags, re.M)),
            "commands in --help": commands(root),
            "lines of README.md": count(root, ["README.md"], "$^")}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    print("| weight | |\n|---|---|")
    for name, value in weight(root).items():
        print(f"| {name} | {'not built' if value is None else value} |")
    total = 0
    print("\n| folder | kind | files | lines | median | 95th percentile | longest |\n|---|---|---|---|---|---|---|")
    for (folder, kind), files in sorted(lengths(root).items()):
        files.sort()
        lines = [count for count, _ in files]
        total += sum(lines)
        print(f"| {folder} | {kind} | {len(files)} | {sum(lines)} | {statistics.median(lines):.0f} "
              f"| {lines[int(0.95 * (len(lines) - 1))]} | {files[-1][0]}, {files[-1][1]} |")
    print(f"\n{total} lines in all")


if __name__ == "__main__":
    main()
