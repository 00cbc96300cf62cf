"""`python -m bfinfra`, and the command `bfinfra`."""

from __future__ import annotations

import importlib
import signal


def program() -> None:
    """The command line as a whole process. Ctrl-C during its imports ends it like any other program."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    importlib.import_module("bfinfra.cli").program()


if __name__ == "__main__":
    program()
