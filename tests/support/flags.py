"""The flags of a program that imitates one of ours."""


def arguments(words):
    """From `--name value`, `--name=value` and `--name` to {"name": "value"}."""
    found, i = {}, 0
    while i < len(words):
        name, _, value = words[i].partition("=")
        if not value and i + 1 < len(words) and not words[i + 1].startswith("--"):
            i += 1
            value = words[i]
        found[name.lstrip("-")] = value
        i += 1
    return found
