"""Units of systemd."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from bfinfra.formats import Unwritable, encoded
from bfinfra.formats.visible import visible

PLAIN = re.compile(r"[A-Za-z0-9_./:=+@,-]+")
PROGRAM = re.compile(r"/[^\"'$\\]+")
USER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,30}|[0-9]{1,10}")
ESCAPES = {'"': '\\"', "\\": "\\\\", "$": "$$", "%": "%%"}
Settings = Sequence[tuple[str, str]]
"""Key and value. A comment has the key `#`."""


def unit(sections: Mapping[str, Settings]) -> str:
    """A unit's text. Values are written with the functions below. Raises Unwritable for one that would not
    stay on its line.
    """
    return "\n".join("".join(_section(name, settings)) for name, settings in sections.items())


def words(text: object) -> str:
    """Free text, such as a description: one visible line."""
    plain = visible(text).strip()
    return (f"{plain}\\x5c" if plain.endswith("\\") else plain).replace("%", "%%")


def path(text: str) -> str:
    """A path that is a whole value. Raises Unwritable."""
    if not text.startswith("/") or not text.isprintable() or text != text.rstrip(" \\"):
        raise Unwritable("is no absolute path of visible characters")
    return text.replace("%", "%%")


def user(name: str) -> str:
    """The value of User=. Raises Unwritable."""
    if not USER.fullmatch(name):
        raise Unwritable("is no name of a user: systemd allows letters, digits, dashes and underscores")
    return name


def command(argv: Iterable[object]) -> str:
    """The value of ExecStart=: a program's path and its arguments, none of which systemd changes. Raises
    Unwritable.
    """
    program, *arguments = map(str, argv)
    if not PROGRAM.fullmatch(program) or not program.isprintable():
        raise Unwritable(
            "is no program that systemd takes: an absolute path without quotes, $ and backslashes"
        )
    return " ".join(map(word, (program, *arguments)))


def word(text: object) -> str:
    """One word of a command. Raises Unwritable."""
    full = str(text)
    encoded(full)
    return full if PLAIN.fullmatch(full) else '"' + "".join(map(_escaped, full)) + '"'


def comment(text: object) -> str:
    """A comment's line."""
    return f"# {visible(text)}"


def _section(name: str, settings: Settings) -> Iterable[str]:
    yield f"[{name}]\n"
    for key, value in settings:
        if key == "#":
            yield f"{comment(value)}\n"
            continue
        if not value.isprintable() or value.endswith("\\"):
            raise Unwritable(f"does not stay on the line of {key}=")
        yield f"{key}={value}\n"


def _escaped(char: str) -> str:
    if char in ESCAPES:
        return ESCAPES[char]
    if char.isprintable():
        return char
    if len(byte := encoded(char)) == 1:
        return f"\\x{byte[0]:02x}"
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"
