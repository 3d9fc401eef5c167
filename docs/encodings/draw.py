"""Draws images/NAME.svg for every encoding with `locant show`.

    python docs/encodings/draw.py [path of the locant command]

python/tests/test_show.py compares what is here with what the command draws.
"""

import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILT = HERE.parents[1] / "build" / "release" / "cli" / "locant"


def main(command=BUILT):
    listed = subprocess.run([command, "list", "--json"], capture_output=True, check=True).stdout
    for entry in json.loads(listed):
        path = HERE / "images" / f"{entry['name']}.svg"
        subprocess.run([command, "show", entry["name"], "--svg", path], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:2])
