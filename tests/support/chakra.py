# SPDX-License-Identifier: Apache-2.0
"""Reads an MLCommons Chakra execution trace: schema/protobuf/et_def.proto of github.com/mlcommons/chakra."""

WORK, COLLECTIVE = 4, 7  # NodeType


def _varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def _fields(data):
    """The values of each field of a message, in order."""
    at, fields = 0, {}
    while at < len(data):
        key, at = _varint(data, at)
        value, at = _varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        fields.setdefault(key >> 3, []).append(value)
    return fields


def _node(fields):
    attributes = [_fields(one) for one in fields.get(10, [])]
    named = {one[1][0].decode(): one.get(9, one.get(27, [None]))[0] for one in attributes}
    return {"id": fields[1][0], "name": fields[2][0].decode(), "type": fields[3][0], "after": set(fields.get(5, [])),
            "us": fields[7][0]} | named


def read(path):
    """Returns the fields of the metadata, and a dictionary for each node."""
    data, at, messages = path.read_bytes(), 0, []
    while at < len(data):
        size, at = _varint(data, at)
        messages.append(_fields(data[at:at + size]))
        at += size
    return [messages[0], *map(_node, messages[1:])]
