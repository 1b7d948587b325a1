# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 180
"""Tests the formats of --data on the command line."""
import io
import json
import struct
import tarfile

import images
import programs

BRIEF = ("--batch-per-device", 4, "--image-size", 16, "--sequence", 8, "--case-budget", 0.05)


def bench(*arguments, **environment):
    return programs.run("loader_bench", *arguments, **environment)


def npy(descr, shape, body):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


def tar(path, samples, **options):
    with tarfile.open(path, "w", **options) as archive:
        for i in range(samples):
            for name, body in ((f"{i:05}.png", images.png()), (f"{i:05}.cls", b"%d" % (i % 3))):
                member = tarfile.TarInfo(f"shard/{name}")
                member.size = len(body)
                archive.addfile(member, io.BytesIO(body))


class Formats(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "loader.json"

    def rows(self, *arguments):
        done = bench(*BRIEF, *arguments, f"--benchmark_out={self.out}")
        self.assertEqual(done.code, 0, done)
        return json.loads(self.out.read_text())["benchmarks"]

    def examples(self):
        (self.folder / "shards").mkdir()
        tar(self.folder / "shards" / "a.tar", 6)
        tar(self.folder / "shards" / "b.tar", 6, format=tarfile.PAX_FORMAT)
        (self.folder / "x.npy").write_bytes(npy("<f4", (16, 3), bytes(16 * 3 * 4)))
        (self.folder / "y.npy").write_bytes(npy("<i8", (16,), bytes(16 * 8)))
        (self.folder / "train.bin").write_bytes(bytes(2 * 200))
        (self.folder / "a b\n.csv").write_text("w,h,label\n" + "1,2,cat\n3,4,dog\n" * 10)
        images.write_folder(self.folder / "photos")
        return {"tar_shards": "shards", "raw_tensors": "x.npy", "tokens": "train.bin", "csv": "a b\n.csv",
                "images": "photos"}

    def test_every_format_is_measured_under_its_name(self):
        for name, path in self.examples().items():
            for kind in ("threads", "processes"):
                with self.subTest(name=name, kind=kind):
                    row, = self.rows("--data", self.folder / path, "--workers", 2, "--worker-type", kind)
                    self.assertEqual(row["name"], f"loader/{name}/workers:2/batch:4/prefetch:2/as:{kind}")
                    self.assertGreater(row["samples_per_s"], 0)

    def test_bad_images_of_a_tar_are_counted_and_links_noted(self):
        path = self.folder / "a.tar"
        with tarfile.open(path, "w") as archive:
            for i, body in enumerate([images.png()] * 8 + [b"no image"]):
                member = tarfile.TarInfo(f"{i}.png")
                member.size = len(body)
                archive.addfile(member, io.BytesIO(body))
            link = tarfile.TarInfo("9.png")
            link.type, link.linkname = tarfile.SYMTYPE, "0.png"
            archive.addfile(link)
        self.rows("--data", path, "--workers", 1)
        context = json.loads(self.out.read_text())["context"]
        self.assertEqual([context["loader_files_used"], context["loader_files_bad"]], ["8", "1"])
        self.assertIn("a.tar:8.png: ", context["loader_first_bad"])
        self.assertIn("1 link", context["loader_notes"])

    def test_what_cannot_be_opened_is_one_line_and_2(self):
        escape = self.folder / "escape.tar"
        with tarfile.open(escape, "w") as archive:
            archive.addfile(tarfile.TarInfo("../../evil.jpg"))
        self.assert_refused(bench("--data", escape), "escape.tar", "leads out of the archive")
        whole = self.folder / "whole.tar"
        tar(whole, 4)
        for name, size in (("half", whole.stat().st_size // 2 // 512 * 512), ("cut", 3000)):
            path = self.folder / f"{name}.tar"
            path.write_bytes(whole.read_bytes()[:size])
            self.assert_refused(bench("--data", path), name, "runcated")
        (self.folder / "notes.txt").write_text("hello")
        self.assert_refused(bench("--data", self.folder / "notes.txt"), "*.npy", "*.csv", "*.tar")
        (self.folder / "bad.csv").write_text("1,2\nx,3\n")
        self.assert_refused(bench("--data", self.folder / "bad.csv"), "bad.csv", "line 2")

    def test_a_table_trains_the_model_that_eats_it(self):
        table = self.folder / "t.csv"
        table.write_text("".join(f"{i},{i % 7},{i % 3},{i % 2}\n" for i in range(32)))
        train = ("--global-batch", 8, "--epochs", 1, "--data", table)
        done = programs.run("howmany-train", "--model", "mlp:sizes=3-8-2", *train, "--json")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(done.json()["epochs"][0]["samples"], 32)
        self.assert_refused(programs.run("howmany-train", "--model", "mlp:sizes=5-8-2", *train), "32 rows",
                            "[3]", "expects f32 [5]")

    def loss_of(self, model, name, descr, shape, values):
        code = {"|u1": "B", "<f2": "e", "<f4": "f", "<f8": "d", "<i4": "i"}[descr]
        folder = self.folder / name
        folder.mkdir()
        (folder / "x.npy").write_bytes(npy(descr, shape, struct.pack(f"<{len(values)}{code}", *values)))
        (folder / "y.npy").write_bytes(npy("<i4", (8, 1), struct.pack("<8i", *[i % 2 for i in range(8)])))
        done = programs.run("howmany-train", "--model", model, "--global-batch", 4, "--epochs", 1, "--json", "--data", folder)
        self.assertEqual(done.code, 0, done)
        self.assertIn("samples are converted", done.err)
        self.assertIn("y i32 [1] to i64 []", done.json()["samples"])
        return done.json()["epochs"][0]["mean_loss"]

    def test_numbers_of_every_type_train_as_those_of_float32(self):
        values = [(37 * i) % 32 for i in range(8 * 32)]
        losses = {descr: self.loss_of("mlp:sizes=32-8-2", descr[1:], descr, (8, 4, 8), values)
                  for descr in ("<f4", "<f2", "<f8", "<i4")}
        self.assertEqual(set(losses.values()), {losses["<f4"]})

    def test_images_of_bytes_with_channels_first_train_as_floats_with_channels_last(self):
        size, model = 32, "resnet18:image=32,classes=2,width=4"
        first = [(37 * i) % 256 for i in range(8 * 3 * size * size)]
        last = [first[(n * 3 + c) * size * size + i] / 255 for n in range(8) for i in range(size * size) for c in range(3)]
        self.assertEqual(self.loss_of(model, "first", "|u1", (8, 3, size, size), first),
                         self.loss_of(model, "last", "<f4", (8, size, size, 3), last))

    def test_missing_labels_are_named(self):
        (self.folder / "x.npy").write_bytes(npy("<f4", (8, 3), bytes(96)))
        self.assert_refused(programs.run("howmany-train", "--model", "mlp:sizes=3-2", "--data", self.folder / "x.npy"),
                            "y.npy")


if __name__ == "__main__":
    programs.main()
