#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_schema.py SCHEMA DOCUMENT...: exits with 0 if every document matches the schema, 1 if one
does not, 77 if the library is missing."""
import json
import sys

try:
    import jsonschema
except ImportError:
    sys.exit(77)


def refuse(token):
    raise ValueError(f"{token} is not JSON")


def main():
    with open(sys.argv[1]) as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    bad = 0
    for path in sys.argv[2:]:
        with open(path) as file:
            document = json.load(file, parse_constant=refuse)
        for error in validator.iter_errors(document):
            print(f"{path}: {'/'.join(map(str, error.absolute_path))}: {error.message}", file=sys.stderr)
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
