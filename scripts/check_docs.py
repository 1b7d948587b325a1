#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documents: links lead to files and headings, included files are up to date, README.md
has at most 120 lines."""
import pathlib
import re
import sys

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FILE = re.compile(r"<!-- file: (\S+) -->\n```\w*\n(.*?)^```$", re.M | re.S)
CODE = re.compile(r"^```.*?^```$", re.M | re.S)
MAX_README = 120


def anchors(path):
    """Returns the names that GitHub gives to the headings of a document."""
    heads = re.findall(r"^#+ (.+)$", CODE.sub("", path.read_text()), re.M)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head).lower() for head in heads)
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in plain}


def problems(root, path):
    text, name = path.read_text(), path.relative_to(root)
    for groups in LINK.findall(CODE.sub("", text)):
        target, _, anchor = (groups[0] or groups[1]).partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        there = path if not target else (path.parent / target).resolve()
        if not there.exists():
            yield f"{name}: the link {target} leads nowhere"
        elif anchor and there.suffix == ".md" and anchor not in anchors(there):
            yield f"{name}: {target or name} has no heading #{anchor}"
    for file, body in FILE.findall(text):
        if not (root / file).is_file() or (root / file).read_text() != body:
            yield f"{name}: the block of {file} differs from the file; run scripts/update-docs"
    if str(name) == "README.md" and len(text.splitlines()) > MAX_README:
        yield f"README.md: {len(text.splitlines())} lines, at most {MAX_README}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    paths = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "examples").rglob("*.md"),
             *(root / "reports").rglob("*.md")]
    found = [problem for path in sorted(paths) for problem in problems(root, path)]
    print("\n".join(found) or "documents hold")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
