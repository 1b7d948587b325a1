#!/usr/bin/env python3
"""Files stay small enough to hold one idea: headers 180 lines, sources 400, tests 500."""
import pathlib
import sys

LIMITS = {".h": 180, ".cpp": 400, ".cu": 400, ".cuh": 180, ".py": 400}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    long = []
    for folder in ("core", "parallel", "benches", "reports", "scripts", "tests"):
        for path in sorted((root / folder).rglob("*")):
            limit = 500 if folder == "tests" else LIMITS.get(path.suffix)
            if path.suffix in LIMITS and (lines := len(path.read_text().splitlines())) > limit:
                long.append(f"{path.relative_to(root)}: {lines} lines, at most {limit}")
    print("\n".join(long) or "every file is within its limit")
    return bool(long)


if __name__ == "__main__":
    sys.exit(main())
