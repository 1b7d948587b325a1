"""The howmany programs: run `howmany` or `python -m howmany`."""
