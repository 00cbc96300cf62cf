"""Checks of several fields of a Spec, whose errors point at one of them."""

from __future__ import annotations

from collections.abc import Sequence

from bfinfra.model.errors import FieldError


def one_of(advice: str = "", **given: object) -> None:
    """Raises ValueError unless exactly one of these fields is given (not None); FieldError at the last of
    several. `advice` is added to the message.
    """
    written = [name for name, value in given.items() if value is not None]
    message = f"give either {' or '.join(given)}{advice}"
    if not written:
        raise ValueError(message)
    if len(written) > 1:
        raise FieldError(message, written[-1])


def each_once(field: str, names: Sequence[str]) -> None:
    """Raises FieldError at the first name of the list `field` that is in it a second time."""
    for number, name in enumerate(names):
        if name in names[:number]:
            raise FieldError(f"{name} is listed twice", (field, number))
