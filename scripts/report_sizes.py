#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the lengths of files by folder and kind: median, 95th percentile, longest. A long file is
a hint that it may contain a second idea, not an error."""
import pathlib
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


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    total = 0
    print("| folder | kind | files | lines | median | 95th percentile | longest |\n|---|---|---|---|---|---|---|")
    for (folder, kind), files in sorted(lengths(root).items()):
        files.sort()
        lines = [count for count, _ in files]
        total += sum(lines)
        print(f"| {folder} | {kind} | {len(files)} | {sum(lines)} | {statistics.median(lines):.0f} "
              f"| {lines[int(0.95 * (len(lines) - 1))]} | {files[-1][0]}, {files[-1][1]} |")
    print(f"\n{total} lines in all")


if __name__ == "__main__":
    main()
