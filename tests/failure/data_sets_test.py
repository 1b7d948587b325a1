# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 300
"""Trains on small data sets of every format, good and damaged. Each run ends with code 0, or with one line that names
the file and code 2 or 3. HOWMANY_DATA_SETS is their number; each set depends only on its index."""
import io
import json
import os
import pathlib
import random
import struct
import tarfile

import images
import programs

SETS = int(os.environ.get("HOWMANY_DATA_SETS", "48"))
IMAGES = ("--model", "resnet18:image=16,width=4,classes=3", "--global-batch", 4)
ROWS = ("--model", "mlp:sizes=4-8-3", "--global-batch", 4)
TOKENS = ("--model", "gpt2:width=8,layers=1,heads=2,length=8,vocabulary=16", "--global-batch", 2)
NAMES = ("plain", "with blank", "umlaut-ä", "esc\x1b[2J", "line\nbreak", "quote'\"", "-dash", "%s{}")


def npy(draw, descr, shape, body):
    header = f"{{'descr': '{descr}', 'fortran_order': {draw.random() < 0.02}, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


def damaged(draw, body):
    """The bytes, or less, more or other ones."""
    kind = draw.choice(("good",) * 40 + ("cut", "flipped", "empty", "noise", "longer"))
    if kind == "cut":
        return body[:draw.randrange(len(body) + 1)]
    if kind == "flipped":
        changed = bytearray(body)
        for _ in range(draw.choice((1, 1, 4, 40))):
            if changed:
                changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        return bytes(changed)
    return {"empty": b"", "noise": draw.randbytes(200), "longer": body + draw.randbytes(40)}.get(kind, body)


def picture(draw):
    size = draw.choice(((16, 16), (1, 1), (40, 24), (3, 90)))
    if draw.random() < 0.5:
        return images.jpeg(*size, components=draw.choice((1, 3, 4)))
    return images.png(*size, bits=draw.choice((8, 16)), color=draw.choice((0, 2, 6)), value=draw.randrange(256))


def image_folder(draw, root):
    for label in range(draw.choice((1, 2, 3, 3, 3, 4))):
        folder = root / draw.choice((f"{label}", f"{label}{draw.choice(NAMES)}", f"{label}/deep/er"))
        folder.mkdir(parents=True)
        for i in range(draw.choice((0, 3, 5, 5))):
            name = draw.choice(NAMES) + str(i) + draw.choice((".jpg", ".png", ".PNG", ".webp", ".jpeg", ".txt"))
            (folder / name).write_bytes(damaged(draw, picture(draw)))
    return root, IMAGES


def tar_shards(draw, root):
    with tarfile.open(root / "a.tar", "w") as archive:
        for i in range(draw.choice((0, 4, 8))):
            for end, body in ((".jpg", damaged(draw, picture(draw))), (".cls", damaged(draw, b"%d" % (i % 3)))):
                member = tarfile.TarInfo(draw.choice(("",) * 30 + ("x/", "../")) + f"{i:03}{end}")
                member.size = len(body)
                archive.addfile(member, io.BytesIO(body))
    (root / "a.tar").write_bytes(damaged(draw, (root / "a.tar").read_bytes()))
    return root / "a.tar", IMAGES


def arrays(draw, root):
    descr, code = draw.choice((("<f4", "f"), ("<f8", "d"), ("<f2", "e"), ("|u1", "B"), ("<i4", "i")) * 3 + ((">f4", "f"), ("|O", "q")))
    rows = draw.choice((0, 3, 8, 8, 8))
    values = [draw.randrange(100) if draw.random() < 0.98 else 0 for _ in range(4 * rows)]
    shape = draw.choice(((rows, 4), (rows, 2, 2)) * 4 + ((4, rows), (rows * 4,), ()))
    (root / "x.npy").write_bytes(damaged(draw, npy(draw, descr, shape, struct.pack(f"<{4 * rows}{code}", *values))))
    if draw.random() < 0.9:
        labels = struct.pack(f"<{rows}q", *[draw.choice((0, 1, 2) * 20 + (7, -1)) for _ in range(rows)])
        (root / "y.npy").write_bytes(damaged(draw, npy(draw, "<i8", (rows,), labels)))
    return root, ROWS


def table(draw, root):
    cells = ("1", "2.5", "-3e2", "nan", "", "x", '"4"', "1e999", " 7 ", draw.choice(NAMES))
    line = ("1", "2", "3", "4")
    lines = [",".join((*(draw.choice(cells) if draw.random() < 0.01 else c for c in line), str(i % 3))) for i in range(12)]
    text = draw.choice(("\n",) * 6 + ("\r\n", "\r")).join(lines) + draw.choice(("\n", ""))
    path = root / f"{draw.choice(NAMES[:2])}.csv"
    path.write_bytes(damaged(draw, text.encode(draw.choice(("utf-8",) * 9 + ("utf-16",)))))
    return path, ROWS


def tokens(draw, root):
    path = root / draw.choice(("t.bin", "t.u16", "t.u32"))
    path.write_bytes(damaged(draw, bytes(draw.choice((0, 1, 0)) for _ in range(draw.choice((0, 7, 400, 800))))))
    return path, TOKENS


KINDS = (image_folder, tar_shards, arrays, table, tokens)


class DataSets(programs.TestCase):
    def check_end(self, done, path):
        """Asserts code 0, or code 2 or 3 and a last line that names the program and the data."""
        self.assertIn(done.code, (0, 2, 3), done)
        self.assertFalse(any(ord(c) < 32 and c != "\n" for c in done.err), done)
        if done.code == 0:
            return
        last = done.err.strip().splitlines()[-1]
        self.assertRegex(last, r"^(howmany-train|loader_bench): \S.{10}")
        if "[batchnorm]" not in last:  # a last batch of one image is no fault of a file
            self.assertIn(pathlib.Path(path).parent.name, last, done)

    def check(self, index):
        draw = random.Random(index)
        root = self.folder / str(index)
        root.mkdir()
        path, model = KINDS[index % len(KINDS)](draw, root)
        skip = ("--on-bad-image", "skip") if model == IMAGES and draw.random() < 0.5 else ()
        results = root / "results.json"
        loaded = programs.run("loader_bench", "--data", path, "--workers", 1, "--image-size", 16, "--sequence", 8,
                              "--batch-per-device", 4, "--case-budget", 0.01, f"--benchmark_out={results}", timeout=60)
        self.assertIn(loaded.code, (0, 2, 3), loaded)
        if results.exists() and results.stat().st_size > 0:
            json.loads(results.read_text())
        done = programs.run("howmany-train", *model, "--epochs", 1, "--data", path, *skip, timeout=60)
        self.check_end(done, path)
        return done.code

    def test_each_ends_with_a_result_or_one_reason(self):
        codes = []
        for index in range(SETS):
            with self.subTest(index=index, kind=KINDS[index % len(KINDS)].__name__):
                codes.append(self.check(index))
        print(f"{len(codes)} data sets: {codes.count(0)} trained, {codes.count(2)} refused, {codes.count(3)} failed")
        self.assertGreater(codes.count(0), SETS // 10)
        self.assertGreater(codes.count(2), SETS // 10)


if __name__ == "__main__":
    programs.main()
