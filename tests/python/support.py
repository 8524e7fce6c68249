"""What the tests of the Python package share. CMake sets LACUNA_LIBRARY, LACUNA_PROGRAM and PYTHONPATH."""
import os
import pathlib
import subprocess
import tempfile
import unittest
import warnings

import numpy as np

import lacuna

warnings.filterwarnings("ignore", ".* ended below the floor")  # the tests' fits are short

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("LACUNA_PROGRAM", str(ROOT / "build/test/lacuna"))
FAST = {"epochs": 3, "members": 1}  # settings of the default method


def program(*arguments):
    """Runs the program; its stdout."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"lacuna {' '.join(map(str, arguments))} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def toy(rows=120, **options):
    return lacuna.simulate(**{"rows": rows, "sizes": [6, 5, 4], "labels": 5, "seed": 3, **options})


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refused(self, kind, *words):
        """A context that expects an exception of `kind` whose message has all the words."""
        return Refused(self, kind, words)


class Refused:
    def __init__(self, case, kind, words):
        self.case, self.kind, self.words = case, kind, words

    def __enter__(self):
        return self

    def __exit__(self, kind, value, _traceback):
        self.case.assertIsNotNone(kind, f"no {self.kind.__name__} was raised")
        self.case.assertIsInstance(value, self.kind)
        for word in self.words:
            self.case.assertIn(word, str(value))
        return True


def same(case, a, b):
    """Bit for bit."""
    np.testing.assert_array_equal(np.asarray(a).view(np.uint8), np.asarray(b).view(np.uint8))
