"""What stands behind a benchmark's name: whole numbers, or --help."""

from __future__ import annotations

import argparse


def numbers(about: str | None, **defaults: int | tuple[int, ...]) -> argparse.Namespace:
    """By name, in this order; the last one is a list where its default is a tuple. What is no number ends the
    program with a sentence.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        parser.add_argument(
            name,
            type=_positive,
            nargs="*" if isinstance(default, tuple) else "?",
            default=default,
            metavar=name.upper(),
        )
    return parser.parse_args()


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, found {text!r}")
    return int(text)
