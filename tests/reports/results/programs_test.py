# SPDX-License-Identifier: Apache-2.0
# labels: process
"""Tests which programs of a bundle howmany starts: those in cuda12/bin if the driver serves CUDA 12."""
import shutil

import programs

DRIVER12 = programs.BIN.resolve() / "fake_driver12"


class Programs(programs.TestCase):
    def setUp(self):
        super().setUp()
        for name in ("bin", "cuda12/bin"):
            folder = self.folder / name
            folder.mkdir(parents=True)
            (folder / "howmany-devices").write_text(f"#!/bin/sh\necho {name} >>{self.folder}/started\nexit 3\n")
            (folder / "howmany-devices").chmod(0o755)
        shutil.copy(programs.BIN / "howmany", self.folder / "bin")

    def started(self, driver=""):
        programs.run(self.folder / "bin" / "howmany", "devices", LD_LIBRARY_PATH=str(driver))
        return (self.folder / "started").read_text().split()

    def test_a_driver_of_cuda_12_gets_its_own(self):
        self.assertEqual(self.started(DRIVER12), ["cuda12/bin"])

    def test_without_such_a_driver_or_folder_they_are_beside_howmany(self):
        self.assertEqual(self.started(), ["bin"])
        shutil.rmtree(self.folder / "cuda12")
        self.assertEqual(self.started(DRIVER12), ["bin", "bin"])


if __name__ == "__main__":
    programs.main()
