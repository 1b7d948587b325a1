#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the include directions: core/base <- core <- parallel <- benches, tests; core/base <-
reports. No file includes a source file. No two headers define a type of the same name, since the
linker would merge them. No source is in the root of core, benches or reports: each belongs to a
room."""
import pathlib
import re
import sys

MAY_INCLUDE = {
    "core/base": {"core/base"},
    "core": {"core"},
    "parallel": {"core", "parallel"},
    "benches": {"core", "parallel", "benches"},
    "reports": {"core/base", "reports"},
    "tests": {"core", "parallel", "benches", "reports", "tests"},
}
FACTORIES = {"writers"}  # a list in one header declares all of the folder
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
LINKED_TOGETHER = [["core", "parallel", "benches"], ["core/base", "reports"]]
TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)[^;\n]*\{", re.M)


def problems(root):
    for folder, allowed in MAY_INCLUDE.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in {".h", ".cpp", ".cu", ".cuh"}:
                continue
            for target in INCLUDE.findall(path.read_text()):
                where = f"{path.relative_to(root)}: includes \"{target}\""
                if not target.startswith(tuple(f"{part}/" for part in allowed)):
                    yield f"{where}, but {folder} may include only {', '.join(sorted(allowed))}"
                if target.endswith((".cpp", ".cu")):
                    yield f"{where}, a source file"
                if not (root / target).is_file():
                    yield f"{where}, which is not a path from the project's root"
                private = re.match(r"core/backends/\w+/", target)
                if private and folder != "tests" and not str(path.relative_to(root)).startswith(private.group()):
                    yield f"{where}, private to {private.group()}"


def twice_defined(root):
    for folders in LINKED_TOGETHER:
        first = {}
        for path in sorted(p for folder in folders for p in (root / folder).rglob("*.h")):
            text = path.read_text()
            space = re.search(r"^namespace (\S+)", text, re.M)
            for name in TYPE.findall(text):
                name = f"{space.group(1) if space else ''}::{name}"
                here = path.relative_to(root)
                if first.setdefault(name, here) != here:
                    yield f"{here}: defines {name}, which {first[name]} defines too"


def outside_of_rooms(root):
    for folder in ("core", "benches", "reports"):
        for path in sorted((root / folder).iterdir()):
            if path.suffix in {".h", ".cpp", ".cu", ".cuh"}:
                yield f"{path.relative_to(root)}: is in no room of {folder}"


def without_header(root):
    for path in sorted((root / "reports").rglob("*.cpp")):
        is_program = re.search(r"^int main\(", path.read_text(), re.M)
        if not is_program and path.parent.name not in FACTORIES and not path.with_suffix(".h").is_file():
            yield f"{path.relative_to(root)}: has no header of its name"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = [*problems(root), *twice_defined(root), *outside_of_rooms(root), *without_header(root)]
    print("\n".join(found) or "layering holds")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
