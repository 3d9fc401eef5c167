"""python -m locant, and the `locant` command that pip installs: the same command line as in C++."""

import signal
import sys

from locant import _locant


def main():
    """Runs the command in sys.argv and returns its exit code."""
    # Python would only note an interrupt, and act on it when the C++ side returns.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _locant.run_command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
