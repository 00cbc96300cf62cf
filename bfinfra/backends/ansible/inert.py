"""The only writer of what Ansible takes as variables. By itself Ansible evaluates each string of an inventory
and of `-e` as a template, on this machine. Here each one is marked as data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import overload

from bfinfra.model.errors import BfinfraError, Problem

UNSAFE = "__ansible_unsafe"
"""Ansible's own mark, in JSON, of a string that is no template."""
SECRETS, PASSWORDS = "bfinfra_secrets", "bfinfra_sudo"
"""The variables with a role's secrets, and with the machines' passwords for sudo."""
OWN_PASSWORD = f"{{{{ {PASSWORDS}[inventory_hostname] }}}}"
"""The one template among the variables: a constant, which no value is part of."""
PATHS = frozenset({"archive", "dest", "files", "folders", "gone", "path", "program", "record"})
"""The variables that are paths on a machine: one, or a list. Roles take paths from no others."""
WORD = 128 << 10
"""Bytes of the shortest text that Linux takes as no word of a command. A list holds words or paths."""
KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
UNSENDABLE = {
    "a NUL byte": re.compile("\0"),
    "characters that are no text (bytes that were not UTF-8, or halves of a character)": re.compile(
        "[\ud800-\udfff]"
    ),
}
NO_PATH = {
    "it does not begin with a slash": re.compile(r"(?!/|\Z)"),
    "Ansible reads a variable behind its $": re.compile(r".*\$", re.DOTALL),
    "it goes up with ..": re.compile(r"(.*/)?\.\.(/|\Z)", re.DOTALL),
    "it has control characters": re.compile(r".*[\x00-\x1f\x7f]", re.DOTALL),
}


Data = Mapping[str, object]


@overload
def inert(value: Data, at: str, hand: Callable[[Path], str]) -> dict[str, object]: ...
@overload
def inert(value: object, at: str, hand: Callable[[Path], str]) -> object: ...
def inert(value: object, at: str, hand: Callable[[Path], str]) -> object:
    """The value as JSON for Ansible, in which every string at any depth is data. `at`: how a message begins
    that names it; `hand`: takes a file of this machine, which is a Path, and returns its neutral path.

    Raises BfinfraError, which never shows a text, for what would arrive as something else: text with NUL or
    without an encoding, a path that Ansible would expand, a key that is no plain name.
    """
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return {UNSAFE: _text(value, at)}
        case Path():
            if not value.is_file():
                raise _refused(at, f"{value} is no file that can be read")
            return {UNSAFE: hand(value)}
        case Mapping():
            return {
                _key(key, at): inert(_checked(key, each, at), f"{at}{key}.", hand)
                for key, each in value.items()
            }
        case Sequence():
            return [
                inert(_word(each, f"{at}{number}"), f"{at}{number}.", hand)
                for number, each in enumerate(value)
            ]
        case _:
            raise TypeError(f"{at}: {type(value).__name__} is no variable for Ansible")


def _text(value: str, at: str) -> str:
    for what, pattern in UNSENDABLE.items():
        if pattern.search(value):
            raise _refused(at, f"it holds {what}")
    return str(value)


def _word(value: object, at: str) -> object:
    if isinstance(value, str) and len(value.encode(errors="surrogatepass")) >= WORD:
        raise _refused(at, f"it has {WORD} bytes or more, and no command takes such a word")
    return value


def _key(key: object, at: str) -> str:
    """A mapping's key. Ansible has no mark for one, so only plain names pass."""
    if not isinstance(key, str) or not KEY.fullmatch(key):
        raise _refused(at, f"its key {key!r} is no plain name")
    return str(key)


def _checked(key: object, value: object, at: str) -> object:
    """The value; if it is a path, or a list of paths, only as Ansible takes it as it is."""
    if key in PATHS:
        for path in (value,) if isinstance(value, str) else value if isinstance(value, Sequence) else ():
            for why, pattern in NO_PATH.items():
                if isinstance(path, str) and pattern.match(path):
                    raise _refused(f"{at}{key}", f"the path {path!r} is not taken as it is: {why}")
    return value


def _refused(at: str, why: str) -> BfinfraError:
    return BfinfraError(
        Problem(
            f"{at.rstrip('.: ')} can't be handed to Ansible",
            why=why,
            next="correct it in the site, or in the file or on the machine that it comes from",
        )
    )
