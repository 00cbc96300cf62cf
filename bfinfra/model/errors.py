"""The errors of bfinfra; the class of an error is the decision what to do about it.

BfinfraError
├── SiteError       the files are wrong; carries every problem found
├── Refusal         a kind refuses, before anything is written; names the field
│   └── Awaited     (model/awaited.py) a file that isn't there yet holds a resource back, and nothing else
├── Unsafe          the guard stopped a plan
├── Diverged        fresh state would change the announced action
├── Locked          another apply of this site runs on this machine
├── OutOfFiles      this process may open no more files
├── SecretMissing   a secret reference leads nowhere
└── RemoteError     a server refused, failed or answered oddly
    ├── Unreachable   nothing was sent                                       try again
    ├── Busy          come back later (503, 429, task in progress)           try again, honour retry_after
    │   └── NotYet      what a step needs isn't there yet                    the same, and then still waiting
    ├── Unanswered    it may have acted, the answer is lost                  look, then decide
    ├── StillRunning  it takes longer than it was given                      the run ends as still waiting
    ├── Expired       the session or token ended                             log in again
    ├── Untrusted     the certificate is not the trusted one                 final
    ├── Denied        the account is not let in                              final
    │   └── Forbidden   it is let in, and lacks a right                      final, or a reader goes without
    ├── Missing       no such object                                         final
    ├── Exists        the name is taken                                      look, then decide
    ├── Conflict      another writer owns the field or changed the object    look, then decide
    ├── Rejected      understood and refused, or the task failed             final
    └── Malformed     an answer that makes no sense                          final
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import ClassVar, NamedTuple

from bfinfra.model.records import dataclass
from bfinfra.model.redact import redact


class Place(NamedTuple):
    """A spot in a site file: 1-based line and column, and the line's text. Line 0: `file` is an argument."""

    file: Path
    line: int
    column: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else str(self.file)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: what, where, why, and what to do next."""

    what: str
    where: Place | str = ""
    why: str = ""
    next: str = ""

    def __post_init__(self) -> None:
        for name in ("what", "why", "next"):
            object.__setattr__(self, name, redact(getattr(self, name)))

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return "; ".join(part for part in (head, self.why, self.next) if part)


class FieldError(ValueError):
    """A field of a spec that conflicts with its others. `field`: dotted, or its keys and positions."""

    def __init__(self, message: str, field: str | tuple[str | int, ...], next: str = "") -> None:
        super().__init__(message)
        self.path: tuple[str | int, ...] = tuple(field.split(".")) if isinstance(field, str) else field
        self.next = next


class BfinfraError(Exception):
    """The base of all errors. `problems` contains everything to report; `str` is the same as text."""

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
    """The observed state changed after the plan was shown."""


class Locked(BfinfraError):
    """Another apply of the same site runs on this machine."""


class SecretMissing(BfinfraError):
    """The target of a secret reference does not exist."""


class OutOfFiles(BfinfraError):
    """This process, or this machine, may open no more files. No server is to blame; none is waited for."""

    @classmethod
    def behind(cls, error: BaseException | None) -> OutOfFiles | None:
        """The error, if that is behind another one."""
        while error is not None:
            if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
                return cls(
                    Problem(
                        "no more files can be opened",
                        why=f"{error.strerror}; connections count as files",
                        next="raise the limit (ulimit -n 4096), or lower --parallelism; then run this again",
                    )
                )
            error = error.__cause__ or error.__context__
        return None


class RemoteError(BfinfraError):
    """A server refused, failed or answered oddly. `server` is host:port; `why` holds its message, safe
    to print.

    `remedy`: what to do next, unless the caller knows better. `away`: set where the server has been away
    too long to be waited for: the seconds from the begin of that until it may be asked again.
    """

    remedy: ClassVar[str] = "mend the cause, then run this again"

    def __init__(self, what: str, *, server: str = "", why: str = "", next: str = "") -> None:
        self.server = server
        self.away: float | None = None
        super().__init__(Problem(what, server, why, next or self.remedy))


class Unreachable(RemoteError):
    """Nothing was sent: no route, connection refused, unknown name, or a time-out while connecting. `met`:
    the server has answered before in this run.
    """

    remedy = "check that the server runs and can be reached, then run this again"

    def __init__(
        self, what: str, *, server: str = "", why: str = "", next: str = "", met: bool = True
    ) -> None:
        self.met = met
        super().__init__(what, server=server, why=why, next=next)


class Busy(RemoteError):
    """The server asks to come back later; `retry_after` in seconds where it names a time."""

    remedy = "run this again when the server is less busy"

    def __init__(
        self, what: str, *, server: str = "", why: str = "", next: str = "", retry_after: float | None = None
    ) -> None:
        self.retry_after = retry_after
        super().__init__(what, server=server, why=why, next=next)


class NotYet(Busy):
    """What a step needs is not there yet, and nothing broke: once retries end, the run is still waiting."""

    remedy = "look at what holds it up, then run this again: it goes on from there"


class Unanswered(RemoteError):
    """The request was sent and no complete answer came back: the server may have acted."""

    remedy = "run this again: it reads what was done, and continues from there"


class StillRunning(RemoteError):
    """It takes longer than it was given (model/waits.py). Nothing broke, and nothing is tried again."""

    remedy = "look at what holds it up, then run this again: it goes on from there"


class Expired(RemoteError):
    """The session or token is no longer valid."""

    remedy = "run this again: it logs in again"


class Untrusted(RemoteError):
    """The server's certificate is not the trusted one."""

    remedy = "find out why the server shows another certificate, then write that one under trust"


class Denied(RemoteError):
    """Wrong credentials, or a right is missing; `privilege` where the server named it. `account`: set where
    it does not accept the user name and password.

    Nobody goes on without what such a server was asked: only Forbidden says that it shows the rest.
    """

    remedy = "grant the account what it lacks, then run this again"

    def __init__(
        self, what: str, *, server: str = "", why: str = "", next: str = "", privilege: str = ""
    ) -> None:
        self.privilege, self.account = privilege, False
        super().__init__(what, server=server, why=why, next=next)


class Forbidden(Denied):
    """The account is logged in, and lacks a right for this one thing."""


class Missing(RemoteError):
    """No such object."""

    remedy = "check whether somebody removed it, then run this again"


class Exists(RemoteError):
    """The name is taken."""

    remedy = "check whose it is; then choose another name, or use bfinfra adopt"


class Conflict(RemoteError):
    """Another manager owns a field, or the object was changed meanwhile."""

    remedy = "check who else changes it, then run this again"


class Rejected(RemoteError):
    """The server refused the request, or the task that it started failed."""

    remedy = "correct what the server names, then run this again"


class Malformed(RemoteError):
    """The answer can't be understood."""

    remedy = "check that this is the right server; if it is, report its version and this"


@dataclass(frozen=True, slots=True)
class Warned:
    """A problem that stops nothing."""

    problem: Problem
