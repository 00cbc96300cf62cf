"""What can go wrong; the class of an error is the decision what to do about it.

BfinfraError
├── SiteError       the files are wrong; carries every problem found
├── Refusal         a kind refuses, before anything is written; names the field
├── Unsafe          the guard stopped a plan
├── Diverged        fresh state would change the announced action
├── Locked          another apply of this site runs on this machine
├── SecretMissing   a secret reference leads nowhere
└── RemoteError     a server said or did something
    ├── Unreachable   nothing was sent                                       try again
    ├── Busy          come back later (503, 429, task in progress)           try again, honour retry_after
    ├── Unanswered    it may have acted, the answer is lost                  look, then decide
    ├── Expired       the session or token ended                             log in again
    ├── Untrusted     the certificate is not the trusted one                 final
    ├── Denied        wrong credentials, or a right is missing               final
    ├── Missing       no such object                                         final
    ├── Exists        the name is taken                                      look, then decide
    ├── Conflict      another writer owns the field or changed the object    look, then decide
    ├── Rejected      understood and refused, or the task failed             final
    └── Malformed     an answer that makes no sense                          final
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Place:
    """A spot in a site file: 1-based line and column, and the line's text."""

    file: Path
    line: int
    column: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: what, where, why, and what to do next."""

    what: str
    where: Place | str = ""
    why: str = ""
    next: str = ""

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return "; ".join(part for part in (head, self.why, self.next) if part)


class BfinfraError(Exception):
    """The root. `problems` says everything there is to say; `str` is the same as text."""

    def __init__(self, *problems: Problem | str) -> None:
        self.problems = tuple(p if isinstance(p, Problem) else Problem(p) for p in problems)
        super().__init__("\n".join(str(p) for p in self.problems))


class SiteError(BfinfraError):
    """The site files are wrong."""


class Refusal(BfinfraError):
    """A kind refuses what is asked. `field` is the dotted path within the spec, e.g. `limits.storage`."""

    def __init__(self, what: str, *, field: str = "", why: str = "", next: str = "") -> None:
        self.field = field
        super().__init__(Problem(what, "", why, next))


class Unsafe(BfinfraError):
    """The plan deletes or disrupts more than it was allowed to."""


class Diverged(BfinfraError):
    """The world moved after the plan was shown."""


class Locked(BfinfraError):
    """Another apply of the same site runs on this machine."""


class SecretMissing(BfinfraError):
    """A secret reference leads nowhere."""


class RemoteError(BfinfraError):
    """A server said or did something. `server` is host:port; `detail` is its own words, made safe to print."""

    def __init__(self, what: str, *, server: str = "", why: str = "", next: str = "") -> None:
        self.server = server
        super().__init__(Problem(what, server, why, next))


class Unreachable(RemoteError):
    """Nothing was sent: no route, refused, no name, timed out while connecting."""


class Busy(RemoteError):
    """The server asks to come back; `retry_after` in seconds where it said so."""

    def __init__(self, what: str, *, server: str = "", why: str = "", next: str = "", retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(what, server=server, why=why, next=next)


class Unanswered(RemoteError):
    """The request went out and no whole answer came back: it may have acted."""


class Expired(RemoteError):
    """The session or token is no longer valid."""


class Untrusted(RemoteError):
    """The server's certificate is not the trusted one."""


class Denied(RemoteError):
    """Wrong credentials, or a right is missing; `privilege` where the server named it."""

    def __init__(self, what: str, *, server: str = "", why: str = "", next: str = "", privilege: str = "") -> None:
        self.privilege = privilege
        super().__init__(what, server=server, why=why, next=next)


class Missing(RemoteError):
    """No such object."""


class Exists(RemoteError):
    """The name is taken."""


class Conflict(RemoteError):
    """Another writer owns a field or changed the object in between."""


class Rejected(RemoteError):
    """The server understood and refused, or the task it started failed."""


class Malformed(RemoteError):
    """The answer can't be understood."""



@dataclass(frozen=True, slots=True)
class Warned:
    """Something to say that stops nothing."""

    problem: Problem
