# SPDX-License-Identifier: Apache-2.0
# labels: process slow
# timeout: 600
"""examples/cpp as a project outside of the tree: with an installed howmany and with its sources."""
import os
import pathlib
import subprocess

import programs

SOURCE = pathlib.Path(os.environ["HOWMANY_SOURCE"])
BUILD = programs.BIN.resolve().parent
PROGRAM = "data_parallel_block"


def cached(name):
    """Returns a value of the cache of howmany's own build."""
    for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split("=", 1)[1]
    return ""


def command(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Outside(programs.TestCase):
    def setUp(self):
        super().setUp()
        if cached("HM_SANITIZE"):
            self.skipTest("the libraries need a sanitizer's runtime")

    def configure(self, *options):
        """Returns the folder of a build of examples/cpp."""
        build = self.folder / "build"
        command("cmake", "-S", SOURCE / "examples/cpp", "-B", build, "-G", "Ninja",
                f"-DCMAKE_CXX_COMPILER={cached('CMAKE_CXX_COMPILER')}", *options)
        return build

    def install(self):
        prefix = self.folder / "prefix"
        command("cmake", "--install", BUILD, "--component", "development", "--prefix", prefix)
        return prefix

    def test_builds_and_runs_with_an_installed_howmany(self):
        build = self.configure(f"-DCMAKE_PREFIX_PATH={self.install()}")
        command("cmake", "--build", build, "--target", PROGRAM)
        self.assertIn("Loss", command(build / PROGRAM))

    def test_another_minor_version_is_not_found(self):
        (self.folder / "project").mkdir()
        (self.folder / "project/CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(p CXX)\nfind_package(howmany 0.99)\n"
            "if(howmany_FOUND)\n  message(FATAL_ERROR found)\nendif()\n")
        command("cmake", "-S", self.folder / "project", "-B", self.folder / "build", "-G", "Ninja",
                f"-DCMAKE_PREFIX_PATH={self.install()}")

    def test_an_installed_header_includes_only_installed_headers(self):
        include = self.install() / "include/howmany"
        headers = sorted(include.rglob("*.h"))
        self.assertGreater(len(headers), 50)
        for header in headers:
            for line in header.read_text().splitlines():
                if line.startswith('#include "'):
                    self.assertTrue((include / line.split('"')[1]).exists(), f"{header}: {line}")

    # A whole build takes minutes. These objects failed to compile when howmany was added to a project: the example needs
    # C++20, and the list of backends the generated howmany_parts.h.
    def test_compiles_with_the_sources(self):
        build = self.configure(f"-DHOWMANY_SOURCE={SOURCE}", f"-DHM_CUDA={cached('HM_CUDA')}", f"-DHM_MPI={cached('HM_MPI')}",
                               "-DHM_FAST_BUILD=OFF", "-DCMAKE_BUILD_TYPE=Debug")
        command("cmake", "--build", build, "--target", f"CMakeFiles/{PROGRAM}.dir/{PROGRAM}.cpp.o",
                "howmany/parallel/CMakeFiles/howmany_parallel.dir/comm/comm_names.cpp.o")
        targets = command("cmake", "--build", build, "--target", "help")
        for unwanted in ("core_tests", "howmany-train", "package"):
            self.assertNotIn(unwanted + ":", targets)


programs.main()
