# SPDX-License-Identifier: Apache-2.0
# labels: process browser
# timeout: 180
"""Opens report.html in a real browser: light, dark, and 400 pixels wide."""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import programs

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
BROWSER = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium"))), None)
PAGES = sorted((ROOT / "docs/results/guide").glob("*/summary.json"))
LIGHT, DARK = ("--blink-settings=preferredColorScheme=1",), ("--blink-settings=preferredColorScheme=0",)


@unittest.skipIf(os.environ.get("HOWMANY_NO_BROWSER") == "1", "HOWMANY_NO_BROWSER is set")
class Browser(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.assertTrue(BROWSER, "no chromium is installed; HOWMANY_NO_BROWSER=1 skips this test")

    def open(self, page, *options):
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
             f"--user-data-dir={self.folder / 'browser'}", "--dump-dom", *options, page.as_uri()],
            capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line for line in done.stderr.splitlines() if "CONSOLE" in line], [])
        return done.stdout

    def measured(self, text, *options):
        """The page's policy forbids scripts, so a copy without the policy is measured."""
        text, removed = re.subn(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", text)
        self.assertEqual(removed, 1)
        copy = self.folder / "copy.html"
        copy.write_text(text.replace("</body>", f"<script>{(HERE / 'measure_page.js').read_text()}</script></body>"))
        result = re.search(r'<pre id="result">(.*?)</pre>', self.open(copy, *options), re.DOTALL)
        return json.loads(html.unescape(result.group(1)))

    def pages(self):
        for summary in PAGES:
            folder = self.folder / summary.parent.name
            folder.mkdir()
            shutil.copy(summary, folder)
            done = programs.run("howmany", "report", folder)
            self.assertEqual(done.code, 0, done)
            yield summary.parent.name, folder / "report.html"

    def test_reports_fit_and_are_readable(self):
        for name, page in self.pages():
            self.open(page)  # as it is: nothing is written to the console
            for theme, width in ((LIGHT, 1200), (DARK, 1200), (LIGHT, 400), (DARK, 400)):
                with self.subTest(name=name, theme=theme, width=width):
                    seen = self.measured(page.read_text(), *theme, f"--window-size={width},800")
                    self.assertEqual((seen["dark"], seen["width"]), (theme == DARK, width))
                    self.assertLessEqual(seen["overflow"], 0, seen)
                    self.assertGreaterEqual(seen["contrast"], 4.5, seen)
                    self.assertGreater(seen["texts"], 10)

    def test_the_measure_finds_what_is_wrong(self):
        page = next(self.pages())[1].read_text()
        wide = page.replace("<h1>", '<div style="width: 2000px">x</div><h1>')
        self.assertGreater(self.measured(wide, "--window-size=400,800")["overflow"], 0)
        pale = page.replace("<h1>", '<p style="color: #bbb">pale</p><h1>')
        self.assertLess(self.measured(pale, *LIGHT)["contrast"], 4.5)


if __name__ == "__main__":
    programs.main()
