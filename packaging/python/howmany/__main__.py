# SPDX-License-Identifier: Apache-2.0
"""Replaces this process by the native program: its exit code and signals need no forwarding."""

import os
import signal
import sys


def main():
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "howmany")
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and exec would pass that on
        signal.signal(ignored, signal.SIG_DFL)
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
