# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 300
"""Tests Spack's recipe without Spack, which no package registry has: the style that Spack checks, the rules for names,
versions and checksums, and its methods over a stand-in for Spack's modules."""
import ast
import hashlib
import re
import sys
import types
from unittest import mock

import packed
import programs

REPO = packed.ROOT / "packaging/spack/spack_repo/howmany"
RECIPE = REPO / "packages/howmany/package.py"
# The limits in pyproject.toml of spack-packages.
STYLE = ("line-length = 99\n[lint]\nextend-select = ['E', 'I', 'W']\nignore = ['E731', 'F403', 'F405', 'F811']\n"
         "[lint.isort]\nsplit-on-trailing-comma = false\n"
         "section-order = ['future', 'standard-library', 'third-party', 'spack', 'first-party', 'local-folder']\n"
         "[lint.isort.sections]\nspack = ['spack']\n")


class Spec:
    """Has the variants that are on."""

    def __init__(self, *variants, cuda_arch=("none",)):
        self.on, self.variants = variants, {"cuda_arch": types.SimpleNamespace(value=cuda_arch)}

    def satisfies(self, text):
        if text == "cuda_arch=none":
            return self.variants["cuda_arch"].value == ("none",)
        return (text[1:] in self.on) == (text[0] == "+")


class Package:
    def define(self, name, value):
        return f"-D{name}={value}"

    def define_from_variant(self, name, variant):
        return self.define(name, self.spec.satisfies(f"+{variant}"))


class SpackRecipe(programs.TestCase):
    def load(self):
        """Returns the class of the recipe and the calls of directives: [(name, arguments, keywords)]."""
        calls = []

        def directive(name):
            return lambda *words, **named: calls.append((name, words, named)) or mock.MagicMock()

        spack = types.ModuleType("spack.package")
        for name in ("license", "version", "variant", "depends_on", "when", "requires", "conflicts", "which"):
            setattr(spack, name, directive(name))
        builtin = "spack_repo.builtin.build_systems"
        cmake, cuda = types.ModuleType(f"{builtin}.cmake"), types.ModuleType(f"{builtin}.cuda")
        cmake.CMakePackage, cmake.generator = Package, directive("generator")
        cuda.CudaPackage = type("CudaPackage", (), {})
        names = {module.__name__: module for module in (spack, cmake, cuda)}
        names |= {name: types.ModuleType(name) for name in ("spack", "spack_repo", "spack_repo.builtin", builtin)}
        space = {}
        with mock.patch.dict(sys.modules, names):
            exec(compile(RECIPE.read_text(), RECIPE, "exec"), space)
        return space["Howmany"], calls

    def test_the_repository_has_spacks_layout_and_names(self):
        self.assertRegex((REPO / "repo.yaml").read_text(), rf"^repo:\n  namespace: {REPO.name}\n  api: v2\.\d+\n$")
        classes = [node.name for node in ast.parse(RECIPE.read_text()).body if isinstance(node, ast.ClassDef)]
        self.assertEqual(classes, [RECIPE.parent.name.title().replace("_", "")])

    def test_it_has_spacks_style(self):
        style = self.folder / "ruff.toml"
        style.write_text(STYLE)
        packed.checked(packed.tools() / "ruff", "check", "--no-cache", "--config", style, RECIPE)
        packed.checked(packed.tools() / "ruff", "format", "--no-cache", "--check", "--config", style, RECIPE)

    def test_each_version_has_a_checksum_and_is_in_the_address(self):
        recipe, calls = self.load()
        versions = [(words, named) for name, words, named in calls if name == "version"]
        self.assertEqual([words for words, _ in versions], [(packed.VERSION,)])
        self.assertRegex(versions[0][1]["sha256"], r"^[0-9a-f]{64}$")
        self.assertIn(f"/v{packed.VERSION}/howmany-{packed.VERSION}.tar.gz", recipe.url)

    def test_the_release_fills_in_address_and_checksum(self):
        release = self.folder / "release"
        release.mkdir()
        for name in (packed.SOURCE, packed.PROGRAMS):
            (release / name).write_text(name)
        packed.checked(packed.ROOT / "scripts/recipes", packed.ADDRESS, release, self.folder)
        text = (self.folder / RECIPE.relative_to(packed.ROOT / "packaging")).read_text()
        self.assertIn(f'sha256="{hashlib.sha256(packed.SOURCE.encode()).hexdigest()}"', text)
        self.assertEqual(text.count(f'"{packed.ADDRESS}'), 2)

    def test_variants_become_options_that_the_build_has(self):
        recipe, _ = self.load()
        recipe.spec = Spec("gloo", "cuda", cuda_arch=("80", "90"))
        options = dict(word[2:].split("=", 1) for word in recipe().cmake_args())
        self.assertEqual(options, {"HM_WERROR": "False", "HM_CUDA": "True", "HM_MPI": "False",
                                   "CMAKE_DISABLE_FIND_PACKAGE_Gloo": "False",
                                   "CMAKE_CUDA_ARCHITECTURES": "('80', '90')"})
        files = [packed.ROOT / "CMakeLists.txt", *(packed.ROOT / "cmake").glob("*.cmake")]
        build = "\n".join(path.read_text() for path in files)
        for option in filter(re.compile("HM_").match, options):
            self.assertRegex(build, rf"option\({option} ")
        self.assertIn(f"add_custom_target({recipe().build_targets[0]} ", build)
        recipe.spec = Spec("mpi")
        self.assertIn("-DCMAKE_DISABLE_FIND_PACKAGE_Gloo=True", recipe().cmake_args())

    def test_required_libraries_are_dependencies(self):
        """Those of scripts/packages.txt without `optional` and `[test]`, under Spack's names."""
        _, calls = self.load()
        needed = {re.split("[@ ]", words[0])[0] for name, words, named in calls
                  if name == "depends_on" and "when" not in named}
        known = {"g++": "cxx", "ninja-build": None, "openmpi-bin": None, "pkg-config": "pkgconfig",
                 "nlohmann-json3-dev": "nlohmann-json",
                 "libjpeg-dev": "jpeg", "libboost-math-dev": "boost", "libbenchmark-dev": "benchmark",
                 "libgtest-dev": "googletest", "libgmock-dev": "googletest"}
        for line in (packed.ROOT / "scripts/packages.txt").read_text().splitlines():
            package, _, comment = line.partition("#")
            package = package.strip()
            if not package or "[" in comment or "optional" in comment:
                continue
            name = known.get(package, re.sub("^lib(?!png|webp|archive)|-dev$", "", package))
            if name:
                self.assertIn(name, needed, package)


if __name__ == "__main__":
    programs.main()
