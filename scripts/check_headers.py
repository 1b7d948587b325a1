#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that headers compile alone, without headers that another file includes first: check_headers.py ROOT BUILD.
These are the headers that differ from main, or all of them if HOWMANY_NIGHTLY is set or main is unknown.

The large headers of libraries are compiled once per set of them. A header starts from the set that it includes
itself, directly or through others, so it is given nothing that it lacks. For the same reason one compilation takes
several headers, each of which includes the one before. Conditions around an include are ignored."""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

FOLDERS = ("core", "parallel", "benches", "reports", "tests")
INCLUDE = re.compile(r'^#include [<"]([^>"]+)[>"]', re.MULTILINE)
LARGE = {"CLI/CLI.hpp", "chrono", "filesystem", "fmt/core.h", "functional", "gtest/gtest.h", "map", "memory",
         "nlohmann/json.hpp", "string", "thread", "vector"}


def flags_of(entries):
    """Returns the compiler, definitions and include paths of the whole build."""
    compiler, flags = "c++", {}
    for entry in entries:
        if entry["file"].endswith(".cu"):
            continue
        words = shlex.split(entry["command"])
        words = [w for w in words if not w.endswith("ccache")]
        compiler = words[0]
        for i, word in enumerate(words):
            if word.startswith(("-I", "-D", "-std")):
                flags[word] = None
            elif word == "-isystem":
                flags[f"-isystem{words[i + 1]}"] = None
    return compiler, list(flags)


def changed_headers(root):
    """Returns the headers that differ from main, or None if main is unknown."""
    base = subprocess.run(["bash", "-c", "source scripts/common.sh && change_base"], cwd=root, capture_output=True,
                          text=True, check=False)
    if base.returncode:
        return None
    names = subprocess.run(["git", "diff", "--name-only", "--diff-filter=d", base.stdout.strip()], cwd=root,
                           capture_output=True, text=True, check=True).stdout.split()
    names += subprocess.run(["git", "ls-files", "--others", "--exclude-standard"], cwd=root, capture_output=True,
                            text=True, check=True).stdout.split()
    return {root / name for name in names if name.endswith(".h")}


def needs_cuda(header):
    return "backends/cuda/" in header.as_posix() or header.name in ("gpu_on_host.h", "fake_gpu.h")


def reached_headers(root, headers):
    """Returns the names of the headers that each header includes, directly or through others."""
    includes = {h.relative_to(root).as_posix(): set(INCLUDE.findall(h.read_text())) for h in headers}

    def reached(name, seen):
        for other in includes.get(name, ()):
            if other not in seen:
                seen.add(other)
                reached(other, seen)
        return seen
    return {name: frozenset(reached(name, set())) for name in includes}


def chains(names, reached):
    """Divides the names into lists in which each header includes the one before it."""
    rest, found = sorted(names, key=lambda name: (len(reached[name]), name)), []
    while rest:
        chain = [rest.pop()]
        for name in reversed(list(rest)):
            if name in reached[chain[-1]]:
                chain.append(name)
                rest.remove(name)
        found.append(chain[::-1])
    return found


def compiled(compile_, chain, start):
    """Returns the headers of a chain, the exit status and the messages."""
    includes = [word for header in chain for word in ("-include", header)]
    run = subprocess.run([*compile_, "-x", "c++", "-fsyntax-only", *start, *includes, os.devnull],
                         capture_output=True, text=True)
    return chain, run.returncode, run.stderr


def precompile(compile_, folder, large):
    """Returns the arguments with which a compilation starts from these headers."""
    source = folder / ("-".join(sorted(large)).replace("/", ".") + ".h")
    source.write_text("".join(f"#include <{name}>\n" for name in sorted(large)))
    subprocess.run([*compile_, "-x", "c++-header", str(source), "-o", f"{source}.gch"], check=True)
    return "-include", str(source)


def check(compile_, root, headers):
    """Returns (headers, exit status, messages) of each chain."""
    reached = reached_headers(root, headers)
    groups = collections.defaultdict(list)
    for name, others in reached.items():
        groups[others & LARGE].append(name)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        def check_group(large):
            shared = large and len(groups[large]) > 1
            start = precompile(compile_, pathlib.Path(folder), large) if shared else ()
            return [compiled(compile_, chain, start) for chain in chains(groups[large], reached)]
        largest_first = sorted(groups, key=lambda large: -len(groups[large]))
        return [result for results in pool.map(check_group, largest_first) for result in results]


def main():
    root, build = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    entries = json.loads((build / "compile_commands.json").read_text())
    compiler, flags = flags_of(entries)
    headers = sorted(h for folder in FOLDERS for h in (root / folder).rglob("*.h"))
    parts = (build / "generated/howmany_parts.h").read_text()
    if "#define HM_HAVE_CUDA" not in parts:
        headers = [h for h in headers if not needs_cuda(h)]
    if "#define HM_HAVE_CUPTI" not in parts:
        headers = [h for h in headers if h.name != "cupti_records.h"]
    changed = None if "HOWMANY_NIGHTLY" in os.environ else changed_headers(root)
    if changed is not None:
        headers = [h for h in headers if h in changed]
    results = check([compiler, *flags], root, headers)
    failed = [result for result in results if result[1]]
    for chain, _, text in failed:
        print(f"{' and '.join(chain)} do not compile one after the other:\n{text}")
    print(f"{len(headers)} headers in {len(results)} compilations, {len(failed)} of which failed")
    return bool(failed) or (changed is None and not headers)


if __name__ == "__main__":
    sys.exit(main())
