#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every header compiles alone, without headers that another file includes first."""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

FOLDERS = ("core", "parallel", "benches", "reports", "tests")


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


def needs_cuda(header):
    return "backends/cuda/" in header.as_posix() or header.name in ("gpu_on_host.h", "fake_gpu.h")


def check(compiler, flags, header):
    run = subprocess.run([compiler, *flags, "-fsyntax-only", "-x", "c++", "-include", str(header), os.devnull],
                         capture_output=True, text=True)
    return header, run.returncode, run.stderr


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
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = [r for r in pool.map(lambda h: check(compiler, flags, h), headers) if r[1]]
    for header, _, text in failed:
        print(f"{header.relative_to(root)} does not compile alone:\n{text}")
    print(f"{len(headers) - len(failed)} of {len(headers)} headers compile alone")
    return bool(failed) or not headers


if __name__ == "__main__":
    sys.exit(main())
