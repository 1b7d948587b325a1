# SPDX-License-Identifier: Apache-2.0
"""The flags of a fake program."""


def arguments(words):
    """Parses `--name value`, `--name=value` and `--name` into {"name": "value"}."""
    found, i = {}, 0
    while i < len(words):
        name, _, value = words[i].partition("=")
        if not value and i + 1 < len(words) and not words[i + 1].startswith("--"):
            i += 1
            value = words[i]
        found[name.lstrip("-")] = value
        i += 1
    return found
