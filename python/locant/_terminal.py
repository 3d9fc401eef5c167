"""Colours of a terminal, where there is one that wants them (https://no-color.org)."""

import os

CODES = {"good": "32", "fair": "33", "quiet": "2", "strong": "1"}


def painter(stream):
    """A function (text, style) -> the text in that style, or as it is."""
    wanted = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def paint(text, style):
        return f"\033[{CODES[style]}m{text}\033[0m" if wanted and style else text

    return paint
