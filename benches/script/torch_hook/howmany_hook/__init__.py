# SPDX-License-Identifier: Apache-2.0
"""Measures the training steps of an unmodified PyTorch script.

`import torch` calls start() through the entry point group torch.backends (torch 2.5 or later:
"Autoload Mechanism" in PyTorch's documents). Elsewhere: python -m howmany_hook script.py.

Environment: see settings.py. Without HOWMANY_SCRIPT_OUT, start() does nothing. So it may be installed with PyTorch: the
wheel of howmany registers it, for wrappers that drop PYTHONPATH.
Files: one JSON Lines file per rank in that folder, see record.py.
Errors: none reaches the script, except the SystemExit that ends it after the last step.
"""

import os

_started = False


def start():
    global _started
    if _started or not os.environ.get("HOWMANY_SCRIPT_OUT"):
        return
    _started = True
    settings = None
    try:
        from howmany_hook.settings import Settings

        settings = Settings.from_environment()
        from howmany_hook.install import install

        install(settings)
    except Exception as error:
        try:
            from howmany_hook.record import write_failure

            write_failure(settings, error)
        except Exception:
            pass
