"""What an archive from outside may cost, and the one door through which its members come.

Nothing is ever unpacked into a folder: a member's content is read as a stream, and a name is only compared.
"""

from __future__ import annotations

import re
from dataclasses import field

from bfinfra.model.records import dataclass

AGAIN = "get it again from where it came from"
FILE, FOLDER, LINK = "", "a folder", "a symbolic link"
KIB, MIB = 1 << 10, 1 << 20
FREE = 1 * MIB  # unpacked bytes that may be of any ratio: what is mostly zeros shrinks a thousandfold
ODD = re.compile(r"/|~|[A-Za-z]:")  # how a name starts that leads out of the archive's own folder
EXCERPT = 80  # characters of a name that an error shows


class BadArchive(ValueError):
    """An archive is not read. `what` names the member, `why` the limit; whoever knows the file or the server
    names that.
    """

    def __init__(self, what: str, why: str = "", next: str = AGAIN) -> None:
        self.what, self.why, self.next = what, why, next
        super().__init__("; ".join(part for part in (what, why, next) if part))


class NoArchive(BadArchive):
    """It is no archive of this form."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`whole`: unpacked bytes of all members, headers, and archives inside; `member`: bytes of one;
    `members`: also those inside; `ratio`: unpacked bytes for each packed one.

    `header`: bytes of an extended header; `name`: characters; `folders`: of one name, 0 if members stand in
    no folder; `inside`: archives within archives; `links`: symbolic links may stand there, never followed.
    """

    whole: int
    member: int
    members: int
    ratio: int = 200
    header: int = 64 * KIB
    name: int = 1024
    folders: int = 32
    inside: int = 0
    links: bool = False


@dataclass(slots=True)
class Budget:
    """What an archive, with all inside, has cost so far. `packed`, `unpacked`: bytes; `kinds`: by name;
    `outer`: the budget of the archive around it, which pays as well.
    """

    bounds: Bounds
    outer: Budget | None = None
    packed: int = 0
    unpacked: int = 0
    members: int = 0
    depth: int = 0
    kinds: dict[str, str] = field(default_factory=dict)

    def took(self, packed: int) -> None:
        """Count bytes of the archive itself."""
        self.packed += packed

    def gave(self, unpacked: int) -> None:
        """Count bytes that came out. Raises BadArchive."""
        self.unpacked += unpacked
        if self.unpacked > self.bounds.whole:
            raise BadArchive(
                f"it has more than {size(self.bounds.whole)} unpacked", "more is not read", _CHECK
            )
        if self.unpacked > FREE and self.unpacked > self.packed * self.bounds.ratio:
            raise BadArchive(
                f"it swells to more than {self.bounds.ratio} times its size",
                f"{self.packed:,} bytes were unpacked to {self.unpacked:,}",
                _CHECK,
            )
        if self.outer is not None:
            self.outer.gave(unpacked)

    def within(self) -> Budget:
        """The budget of an archive inside. Raises BadArchive if it is too deep."""
        if self.depth >= self.bounds.inside:
            raise BadArchive(
                "it holds archives within archives", f"more than {self.bounds.inside} deep", _CHECK
            )
        return Budget(self.bounds, self, depth=self.depth + 1)

    def admit(self, name: str, kind: str, length: int) -> str:
        """Let one member in: its name, without a leading `./` and a trailing `/`. `kind`: FILE, FOLDER, or
        what it is instead; `length`: its bytes as declared.

        Raises BadArchive for a name that leads out of the archive, isn't plain text, is too long or was
        there before; for what is neither file nor folder; and for what is too large, or one too many.
        """
        self.entered()
        plain = self._named(name, kind)
        if kind not in (FILE, FOLDER) and not (kind == LINK and self.bounds.links):
            raise BadArchive(f"it holds {kind}: {shown(name)}", "it may contain only regular files")
        if kind == FOLDER and not self.bounds.folders:
            raise BadArchive(f"it holds {kind}: {shown(name)}", "it may contain only regular files")
        if kind != FILE and length:
            raise BadArchive(f"it is damaged: {kind} with content: {shown(name)}")
        if length > self.bounds.member:
            raise BadArchive(
                f"{shown(name)} has {length:,} bytes",
                f"files of more than {size(self.bounds.member)} are not read",
                _CHECK,
            )
        self._place(plain, kind)
        return plain

    def _place(self, name: str, kind: str) -> None:
        """Note what is called so, and that its parents are folders: nothing is put behind a link or file."""
        steps = name.split("/")
        for count in range(1, len(steps)):
            self._note("/".join(steps[:count]), FOLDER)
        self._note(name, kind)

    def _note(self, name: str, kind: str) -> None:
        if name in self.kinds and not kind == self.kinds[name] == FOLDER:
            raise BadArchive(f"it holds {shown(name)} twice")
        self.kinds[name] = kind

    def entered(self) -> None:
        """Count one more member. Raises BadArchive."""
        self.members += 1
        if self.members > self.bounds.members:
            raise BadArchive(f"it holds more than {self.bounds.members:,} files", next=_CHECK)
        if self.outer is not None:
            self.outer.entered()

    def _named(self, name: str, kind: str) -> str:
        whole = name.rstrip("/") if kind == FOLDER else name
        whole = whole.removeprefix("./")
        if kind == FOLDER and whole in ("", "."):
            return "."
        parts = whole.split("/")
        if (
            not whole.isprintable()
            or ODD.match(whole)
            or "\\" in whole
            or any(part in ("", ".", "..") for part in parts)
            or len(parts) > self.bounds.folders + 1
            or len(whole) > self.bounds.name
        ):
            raise BadArchive(
                f"it holds a file called {shown(name)!r}",
                "names must be plain, not too long, and stay inside of the archive",
                "do not use it",
            )
        return whole


_CHECK = "make sure that it is what you think it is"


def size(count: int) -> str:
    """`4 MiB`, for a limit in an error."""
    return f"{count // MIB} MiB" if count >= MIB else f"{count // KIB} KiB"


def shown(text: str) -> str:
    """A name as an error shows it."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)[:EXCERPT]
