# SPDX-License-Identifier: Apache-2.0
"""Runs commands in a system that has only Python, its libraries and the C library: no compiler,
CMake, apt or root account. bubblewrap makes the root folder. If it is missing, or if the host
forbids user namespaces, only PATH is restricted."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

# As in the policies of manylinux.
SYSTEM = re.compile(r"^(linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|resolv|util|anl|nsl|stdc\+\+|gcc_s)\.so)")
INTERPRETER = pathlib.Path(sys._base_executable).resolve()


def libraries_of(file):
    """Returns {name: path} of the libraries that the loader finds for this file."""
    listed = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
    found = {}
    for name, path in re.findall(r"^\s*(\S+)(?: => (.+?))?(?: \(0x\w+\))?$", listed, re.M):
        path = path or name
        found[name.rpartition("/")[2]] = path if path.startswith("/") else None
    return found


def libraries_outside(folder, file):
    """Returns the libraries of this file, except the system's, that the loader finds outside the
    folder or not at all."""
    return {name: path for name, path in libraries_of(file).items()
            if not SYSTEM.match(name) and not (path or "").startswith(str(folder))}


def _paths_of_python():
    parts = [INTERPRETER]  # pip needs these two modules and the interpreter
    for name in ("zlib", "pyexpat"):
        origin = importlib.util.find_spec(name).origin
        parts += [pathlib.Path(origin)] if origin != "built-in" else []
    # Debian's ensurepip needs the last.
    paths = {str(INTERPRETER), sysconfig.get_path("stdlib"), "/usr/share/python-wheels"}
    for part in parts:
        paths |= {path for path in libraries_of(part).values() if path}
    c_library = pathlib.Path(libraries_of(INTERPRETER)["libc.so.6"])
    paths |= {str(path) for path in c_library.parent.glob("lib*.so.*") if SYSTEM.match(path.name)}
    return sorted(path for path in paths if os.path.exists(path))


class OnlyPython:
    """`folder` is writable in the sandbox, under its own name. Everything else is read-only."""

    def __init__(self, folder):
        self.folder = str(folder)
        bound = [word for path in _paths_of_python() for word in ("--ro-bind", path, path)]
        self.sandbox = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--unshare-user", "--uid", "1000",
                        "--gid", "1000", *bound, "--ro-bind", "/proc", "/proc", "--ro-bind", "/sys", "/sys",
                        "--dev", "/dev", "--tmpfs", "/tmp", "--bind", self.folder, self.folder, "--chdir", self.folder]
        try:
            probe = subprocess.run([*self.sandbox, INTERPRETER, "-c", ""], capture_output=True, text=True, check=False)
            refused = probe.stderr if probe.returncode else ""
        except FileNotFoundError as error:
            refused = str(error)
        if refused:
            print(f"No root folder of its own, only an empty PATH: {refused.strip()}", file=sys.stderr)
            self.sandbox = []

    def run(self, *command, timeout=120):
        environment = {"PATH": f"{self.folder}/venv/bin", "HOME": self.folder, "PIP_NO_INPUT": "1"}
        return subprocess.run([*self.sandbox, *map(str, command)], capture_output=True, text=True, timeout=timeout,
                              cwd=self.folder, env=environment, check=False)
