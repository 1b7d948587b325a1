# SPDX-License-Identifier: Apache-2.0
"""The howmany programs: run `howmany` or `python -m howmany`."""
