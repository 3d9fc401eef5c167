"""Writes the pages of this folder from the package, the public headers and `locant --help`.

    python docs/api/make.py [path of the locant command]

python/tests/test_api_pages.py compares what is here with what this writes.
"""

import pathlib
import subprocess
import sys

from command_page import command_page
from cpp_page import cpp_page
from python_page import python_page

FOLDER = pathlib.Path(__file__).resolve().parent
BUILT = FOLDER.parents[1] / "build" / "release" / "cli" / "locant"


def pages(command):
    """{file name: its text}"""

    def run(*arguments):
        return subprocess.run([command, *arguments], capture_output=True, text=True, check=True).stdout

    return {"python.md": python_page(), "cpp.md": cpp_page(), "command.md": command_page(run)}


if __name__ == "__main__":
    for name, text in pages(*(sys.argv[1:2] or [BUILT])).items():
        (FOLDER / name).write_text(text)
