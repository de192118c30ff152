"""The program `wf`: `python -m weakform`, and the script that the package installs."""

from __future__ import annotations

import os
import signal
import sys

from . import _native


def main() -> int:
    """Runs `wf` with the arguments of this process, and returns the exit status."""
    # `wf` handles signals itself; Python's handler would only note them.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    status = _native.main(["wf", *sys.argv[1:]])
    # Threads of the solver need no clean-up.
    os._exit(status)


if __name__ == "__main__":
    main()
