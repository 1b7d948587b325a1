# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only
# timeout: 300
"""Builds the Dockerfile with buildah, on an image of this Debian in place of the one that it names, and runs the
sections of the Apptainer definition in a root folder of the same."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import packed
import programs
import slim_root

DOCKERFILE = packed.ROOT / "packaging/docker/Dockerfile"
DEFINITION = packed.ROOT / "packaging/apptainer/howmany.def"


class Container(programs.TestCase):
    @classmethod
    def setUpClass(cls):
        keeper = tempfile.TemporaryDirectory(prefix="hm_test_")
        cls.addClassCleanup(keeper.cleanup)
        cls.base, cls.release = pathlib.Path(keeper.name) / "base", pathlib.Path(keeper.name) / "release"
        slim_root.make(cls.base)
        packed.release(cls.release)


@unittest.skipUnless(shutil.which("buildah") and os.geteuid() == 0, "needs buildah and root")
class Docker(Container):
    def buildah(self, *words):
        """Runs buildah with images below self.folder."""
        configuration = self.folder / "storage.conf"
        configuration.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{self.folder}/images"\n'
                                 f'runroot = "{self.folder}/run"\n')
        environment = {**os.environ, "CONTAINERS_STORAGE_CONF": str(configuration), "BUILDAH_ISOLATION": "chroot"}
        return packed.checked("buildah", *words, env=environment, stdin=subprocess.DEVNULL)

    def build(self, base, *arguments):
        made = self.buildah("from", "scratch").strip()
        self.buildah("add", "--quiet", made, self.base, "/")
        self.buildah("commit", "--quiet", made, base)
        context = self.folder / "context"
        context.mkdir()
        shutil.copy(DOCKERFILE, context)
        shutil.copy(self.release / packed.PROGRAMS, context)
        self.buildah("build", "--pull-never", "--tag", "howmany", *arguments, context)
        return self.buildah("from", "--pull-never", "howmany").strip()

    def test_the_image_has_the_programs_and_starts_them(self):
        text = DOCKERFILE.read_text()
        made = self.build(re.search(r"^ARG BASE=(\S+)$", text, re.M)[1])
        self.assertRegex(self.buildah("run", made, "--", "howmany", "selftest", "--quick", "--quiet"), "(?m)^All is well")
        settings = self.buildah("inspect", "--format", "{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Env}}", made)
        self.assertTrue(settings.startswith("[howmany] "), settings)
        self.assertIn("NVIDIA_DRIVER_CAPABILITIES=compute,utility", settings)

    def test_another_base_is_an_argument(self):
        made = self.build("with-torch:1", "--build-arg", "BASE=with-torch:1")
        self.assertIn(packed.VERSION, self.buildah("run", made, "--", "howmany", "--version"))


class Apptainer(Container):
    def setUp(self):
        super().setUp()
        text = re.sub("^#.*\n", "", DEFINITION.read_text(), flags=re.M)
        arguments = dict(re.findall(r"^ +(\w+)=(\S+)$", self.sections(text)["arguments"], re.M))
        self.assertEqual(arguments["VERSION"], packed.VERSION)
        self.text = re.sub(r"\{\{ *(\w+) *\}\}", lambda match: arguments[match[1]], text)
        self.parts = self.sections(self.text)
        self.root = self.folder / "root"
        shutil.copytree(self.base, self.root, symlinks=True)

    @staticmethod
    def sections(text):
        """Returns {name: body}."""
        parts = re.split(r"^%(\w+)$", text, flags=re.M)
        return dict(zip(parts[1::2], parts[2::2]))

    def run_here(self, script, *words):
        """Runs the shell script in the root folder, as Apptainer does: it ends with the first failure."""
        sandbox = ["bwrap", "--bind", self.root, "/", "--dev", "/dev", "--proc", "/proc", "--ro-bind", "/sys", "/sys",
                   "--tmpfs", "/tmp", "--die-with-parent", "--chdir", "/"]
        probe = subprocess.run([*sandbox, "true"], capture_output=True, text=True, check=False)
        if probe.returncode:
            raise unittest.SkipTest(f"no root folder of its own: {probe.stderr}")
        return packed.checked(*sandbox, "/bin/sh", "-e", "-c", script, "sh", *words,
                              env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"})

    def test_it_starts_from_an_image_without_the_name_of_a_registry(self):
        self.assertRegex(self.text, r"(?m)^Bootstrap: docker\nFrom: [\w-]+:[\w-]+$")

    def test_its_sections_install_test_and_run_the_programs(self):
        self.assertEqual(set(self.parts), {"arguments", "files", "post", "test", "runscript", "help"})
        for line in self.parts["files"].split("\n"):
            if line.strip():
                source, there = line.split()
                shutil.copy(self.release / source, self.root / there[1:])
        self.run_here(self.parts["post"])
        self.assertEqual(os.listdir(self.root / "opt"), ["howmany"])
        self.assertRegex(self.run_here(self.parts["test"]), "(?m)^All is well")
        self.assertIn(packed.VERSION, self.run_here(self.parts["runscript"], "--version"))


if __name__ == "__main__":
    programs.main()
