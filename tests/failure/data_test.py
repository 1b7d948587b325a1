# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 180
"""Folders of images as they really come: missing, empty, half broken."""

import json
import os
import shutil

import images
import programs

TRAIN = ("--model", "resnet18:image=16,width=4,classes=2", "--global-batch", "4")


class Data(programs.TestCase):
    def train(self, folder, *more):
        return programs.run("howmany-train", *TRAIN, "--epochs", "1", "--data", folder, *more)

    def test_folders_that_hold_no_images_are_refused(self):
        (self.folder / "empty").mkdir()
        (self.folder / "no_images" / "cat").mkdir(parents=True)
        (self.folder / "only_files").mkdir()
        (self.folder / "only_files" / "a.png").write_bytes(images.png())
        (self.folder / "file").write_text("not a folder")
        for name, words in (("missing", "does not exist"), ("empty", "no usable image"),
                            ("no_images", "no usable image"), ("only_files", "CLASS/FILE.jpg"),
                            ("file", "not a folder")):
            with self.subTest(name):
                self.assert_refused(self.train(self.folder / name), name, words)
                bench = programs.run("speedup_bench", *TRAIN[:2], "--mode", "single",
                                     "--batch-per-device", "4", "--data", self.folder / name)
                self.assert_refused(bench, name, words)
                asked = programs.run("howmany", "gpus", *TRAIN[:2], "--data", self.folder / name,
                                     "--out", self.folder / "out")
                self.assert_refused(asked, name, words)
                self.assertFalse((self.folder / "out").exists())

    def trained(self, result):
        """Samples of the only epoch."""
        self.assertEqual(result.code, 0, result)
        return result.json()["epochs"][0]["samples"]

    def test_good_folder_trains(self):
        result = self.train(images.write_folder(self.folder / "set"), "--json")
        self.assertEqual(self.trained(result), 24)
        self.assertEqual(result.err, "")

    def test_every_kind_of_bad_image_is_named_and_refused(self):
        for name, (body, why) in images.BAD.items():
            with self.subTest(name):
                data = images.write_folder(self.folder / name.replace(".", "_"), good=4)
                (data / "cat" / name).write_bytes(body)
                self.assert_refused(self.train(data), f"cat/{name}", why)

    def test_bad_images_are_skipped_and_counted(self):
        data = images.write_folder(self.folder / "set")
        for name, (body, _) in images.BAD.items():
            (data / "dog" / name).write_bytes(body)
        (data / "dog" / "dangling.png").symlink_to("nowhere")
        (data / "dog" / "folder.jpg").mkdir()
        result = self.train(data, "--on-bad-image", "skip", "--json")
        self.assertEqual(self.trained(result), 24)
        self.assertIn(f"{len(images.BAD) + 1} bad images", result.err)
        self.assertEqual(len(result.err.splitlines()), 1, result)

    def test_sixteen_bit_gray_and_alpha_are_no_errors(self):
        data = self.folder / "set"
        for name, kind in (("a", {"bits": 16}), ("b", {"color": 0}), ("c", {"color": 6}),
                           ("d", {"bits": 16, "color": 0})):
            (data / name).mkdir(parents=True)
            (data / name / "x.png").write_bytes(images.png(**kind))
        result = programs.run("howmany-train", "--model", "resnet18:image=16,width=4,classes=4",
                              "--global-batch", "4", "--epochs", "1", "--data", data)
        self.assertEqual(result.code, 0, result)

    def test_unreadable_files_and_folders_are_named(self):
        data = images.write_folder(self.folder / "set", good=4)
        (data / "cat" / "dangling.png").symlink_to(self.folder / "nowhere")
        self.assert_refused(self.train(data), "cat/dangling.png", "No such file")
        shutil.rmtree(data)
        if os.geteuid() == 0:
            return  # root reads everything
        images.write_folder(data, good=4)
        (data / "dog").chmod(0)
        self.addCleanup((data / "dog").chmod, 0o700)
        self.assert_refused(self.train(data), "dog", "Permission denied")

    def test_damage_found_only_in_decoding_is_named(self):
        data = images.write_folder(self.folder / "set", good=5)
        body = bytearray(images.png(64, 64))
        body[len(body) // 2] ^= 0xFF  # inside the compressed pixels: header and end look right
        (data / "cat" / "middle.png").write_bytes(body)
        self.assert_refused(self.train(data), "cat/middle.png", code=3)
        result = self.train(data, "--on-bad-image", "skip", "--json")
        self.assertEqual(self.trained(result), 11)
        self.assertIn("1 bad images replaced by others, the first is", result.err)
        self.assertIn("cat/middle.png", result.err)

    def test_names_of_any_bytes_survive_json(self):
        data = images.write_folder(self.folder / "set")
        (data / "cat" / "esc\x1b[2J\nline.jpg").write_bytes(b"no image")
        results = self.folder / "results.json"
        bench = programs.run("loader_bench", "--data", data, "--image-size", 16, "--batch-per-device", 4, "--workers", 1,
                             "--case-budget", 0.05, f"--benchmark_out={results}")
        self.assertEqual(bench.code, 0, bench)
        self.assertIn("esc\\x1b[2J\\x0aline.jpg", json.dumps(json.loads(results.read_text())["context"]).replace("\\\\", "\\"))
        latin = self.folder / os.fsdecode(b"latin-\xe4")
        images.write_folder(latin)
        self.assertIn("latin-\\xe4", self.train(latin, "--json").json()["data"])
        line = self.folder / "two\nlines"
        images.write_folder(line)
        self.assertIn("two\\x0alines", self.train(line, "--json").json()["data"])

    def test_more_classes_than_the_model_tells_apart(self):
        data = images.write_folder(self.folder / "set", good=4, classes=("a", "b", "c"))
        self.assert_refused(self.train(data), "3 classes", "2 outputs")

    def test_fewer_images_than_a_batch(self):
        data = images.write_folder(self.folder / "set", good=1)
        self.assert_refused(self.train(data), "2 samples", "4")

    def test_images_for_a_model_that_eats_none(self):
        data = images.write_folder(self.folder / "set")
        self.assert_refused(programs.run("howmany-train", "--model", "mlp", "--data", data), "mlp",
                            "images")


programs.main()
