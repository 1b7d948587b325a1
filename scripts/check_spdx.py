#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every source names its license in its first lines. --fix adds the line."""
import pathlib
import subprocess
import sys

TEXT = "SPDX-License-Identifier: Apache-2.0"
COMMENTS = {".h": "//", ".inc": "//", ".cpp": "//", ".cu": "//", ".cuh": "//", ".py": "#", ".sh": "#", ".cmake": "#", ".txt": "#"}
EXCLUDED = ("docs/results/", "tests/data/", "scripts/packages.txt")


def comment_of(path):
    """Returns the start of a line comment in this file, or None if it is no source."""
    if path.suffix == ".txt" and path.name != "CMakeLists.txt":
        return None
    if path.suffix in COMMENTS:
        return COMMENTS[path.suffix]
    with open(path, "rb") as file:
        return "#" if file.read(2) == b"#!" else None


def sources(root):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        sys.exit(77)  # not a git checkout
    for name in listed.stdout.split("\0"):
        path = root / name
        if name and not name.startswith(EXCLUDED) and path.is_file() and comment_of(path):
            yield path


def add(path):
    first, rest = "", path.read_text()
    if rest.startswith("#!"):
        first, _, rest = rest.partition("\n")
        first += "\n"
    path.write_text(f"{first}{comment_of(path)} {TEXT}\n{rest}")


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    missing = [path for path in sources(root) if TEXT not in "\n".join(path.read_text().split("\n", 3)[:3])]
    if "--fix" in sys.argv:
        for path in missing:
            add(path)
        return 0
    for path in missing:
        print(f"{path.relative_to(root)}: has no line {TEXT}; scripts/check_spdx.py --fix adds it")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
