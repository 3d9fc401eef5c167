"""The locant command of the build folder: it has commands that `python -m locant` goes without."""

import pathlib
import subprocess

import pytest

import locant

PATH = pathlib.Path(locant.__file__).parents[2] / "cli" / "locant"


def run_command(*arguments, text=None, timeout=None, stdout=subprocess.PIPE):
    """What the command printed, and its errors; skips where only the package is installed."""
    if not PATH.is_file():
        pytest.skip("the locant command is not beside the package")
    return subprocess.run(
        [PATH, *map(str, arguments)], input=text, stdout=stdout, stderr=subprocess.PIPE, text=True,
        check=False, timeout=timeout,
    )
