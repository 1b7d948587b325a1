# SPDX-License-Identifier: Apache-2.0
"""python -m howmany_hook script.py ARGS, for a torch that loads no entry points."""

import os
import runpy
import sys


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: python -m howmany_hook script.py [ARGUMENT...]")
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    import torch  # noqa: F401  calls start() itself if it loads entry points

    import howmany_hook

    howmany_hook.start()
    runpy.run_path(sys.argv[0], run_name="__main__")


main()
