"""Examples run: those of the docstrings, those of docs/python.md with the output it shows, and the gallery."""
import doctest
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import unittest

import lacuna
from support import Case, ROOT


class Documents(Case):
    def test_docstrings(self):
        tried = 0
        for module in (lacuna, *(__import__(f"lacuna.{m.name}", fromlist=["x"]) for m in pkgutil.iter_modules(lacuna.__path__))):
            result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            self.assertEqual(result.failed, 0, module.__name__)
            tried += result.attempted
        self.assertGreater(tried, 15)

    def test_the_tutorial(self):
        text = (ROOT / "docs/python.md").read_text()
        blocks = re.findall(r"```pycon\n(.*?)```", text, re.S)
        self.assertGreater(len(blocks), 4)
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        parser = doctest.DocTestParser()
        test = parser.get_doctest("\n".join(blocks), {}, "docs/python.md", "docs/python.md", 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        output = []
        runner.run(test, out=output.append)
        self.assertEqual(runner.failures, 0, "".join(output))

    def test_the_gallery(self):
        examples = sorted((ROOT / "examples/python").glob("*.py"))
        self.assertGreaterEqual(len(examples), 5)
        for path in examples:
            with self.subTest(path.name):
                self.assertLess(len(path.read_text().splitlines()), 40)
                done = subprocess.run([sys.executable, str(path)], cwd=self.folder, capture_output=True, text=True,
                                      env={**os.environ, "MPLBACKEND": "Agg"})
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.stdout.strip(), "an example shows something")

    def test_types(self):
        self.assertTrue((pathlib.Path(lacuna.__file__).parent / "py.typed").exists())


if __name__ == "__main__":
    unittest.main()
