"""python -m bfinfra.sandbox serve --world FILE --state DIR [--pace X]"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bfinfra.sandbox.reading import BadWorld


def main(words: Sequence[str] | None = None) -> int:
    """Serve until a signal comes; 1 where the world can't be served."""
    parser = argparse.ArgumentParser(prog="python -m bfinfra.sandbox", description=__doc__)
    serve_parser = parser.add_subparsers(required=True).add_parser(
        "serve", help="start the servers of a world and serve until SIGTERM"
    )
    serve_parser.add_argument("--world", type=Path, required=True, help="the world file")
    serve_parser.add_argument("--state", type=Path, required=True, help="the folder that keeps the state")
    serve_parser.add_argument("--pace", type=float, help="1 = as long as the world says, 0 = no waits")
    arguments = parser.parse_args(words)
    from bfinfra.sandbox.serve import Busy, Unreadable, serve  # noqa: PLC0415 - a wrong command line is answered at once

    try:
        serve(arguments.world, arguments.state, arguments.pace)
    except (BadWorld, Busy, Unreadable, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
