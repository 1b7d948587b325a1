# SPDX-License-Identifier: Apache-2.0
"""Writes small image files byte by byte, valid and invalid ones, with the standard library only."""

import struct
import zlib


def _chunk(kind, body):
    return (struct.pack(">I", len(body)) + kind + body +
            struct.pack(">I", zlib.crc32(kind + body)))


def png(width=32, height=32, bits=8, color=2, value=90, claimed=None):
    """A flat PNG; color 0 gray, 2 RGB, 6 RGBA. `claimed` is a size that only the header states."""
    samples = {0: 1, 2: 3, 6: 4}[color]
    row = b"\0" + bytes([value]) * (width * samples * bits // 8)
    header = struct.pack(">IIBBBBB", *(claimed or (width, height)), bits, color, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) +
            _chunk(b"IDAT", zlib.compress(row * height)) + _chunk(b"IEND", b""))


def jpeg(width=32, height=32, components=3, claimed=None):
    """A flat mid-gray baseline JPEG. Four components and an Adobe marker make it CMYK."""
    def segment(marker, body):
        return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body

    ids = range(1, components + 1)
    told = claimed or (width, height)
    frame = struct.pack(">BHHB", 8, told[1], told[0], components)
    frame += b"".join(bytes([i, 0x11, 0]) for i in ids)
    one_code = bytes([1] + [0] * 15 + [0])  # the code "0" for symbol 0: no difference, end of block
    scan = bytes([components]) + b"".join(bytes([i, 0]) for i in ids) + bytes([0, 63, 0])
    blocks = ((width + 7) // 8) * ((height + 7) // 8) * components
    data = bytes(2 * blocks // 8)
    if rest := 2 * blocks % 8:
        data += bytes([0xFF >> rest])
    return (b"\xff\xd8" + (segment(0xEE, b"Adobe\0\x64\0\0\0\0\0") if components == 4 else b"") +
            segment(0xDB, bytes([0] + [1] * 64)) + segment(0xC0, frame) +
            segment(0xC4, b"\x00" + one_code) + segment(0xC4, b"\x10" + one_code) +
            segment(0xDA, scan) + data + b"\xff\xd9")


def write_folder(root, good=12, classes=("cat", "dog")):
    """Writes class folders of valid images, JPEG and PNG alternating."""
    for name in classes:
        (root / name).mkdir(parents=True)
        for i in range(good):
            kind, body = ("png", png(value=10 * i)) if i % 2 else ("jpg", jpeg(40, 24))
            (root / name / f"good{i:02}.{kind}").write_bytes(body)
    return root


BAD = {  # name: (bytes, a word of the reason)
    "zero.jpg": (b"", "empty"),
    "text.jpg": (b"not an image at all", "neither"),
    "cut.jpg": (jpeg(256, 256)[:300], "truncated"),
    "cut.png": (png(64, 64)[:60], "truncated"),
    "huge.png": (png(8, 8, claimed=(60000, 60000)), "60000x60000"),
    "huge.jpg": (jpeg(claimed=(65000, 65000)), "65000x65000"),
}
