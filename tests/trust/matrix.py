"""Who is trusted and who isn't: each sort of server beside each way to trust, with the words that a refusal
says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from trust.authority import Authority, Shown

from bfinfra.model.trust import Trust


@dataclass(frozen=True)
class Case:
    """`says` is what the refusal must contain; "" = trusted."""

    name: str
    server: str
    trust: Callable[[Shown, Authority], Trust]
    says: str


def by_authority(shown: Shown, _: Authority) -> Trust:
    return Trust(ca_pem=shown.ca)


def by_other_authority(_: Shown, other: Authority) -> Trust:
    return Trust(ca_pem=other.pem)


def by_itself(shown: Shown, _: Authority) -> Trust:
    return Trust(ca_pem=shown.pem)


def by_system(_: Shown, __: Authority) -> Trust:
    return Trust()


def by_pin(shown: Shown, _: Authority) -> Trust:
    return Trust(sha256=shown.sha256)


def by_wrong_pin(_: Shown, other: Authority) -> Trust:
    return Trust(sha256=other.leaf().sha256)


SERVERS: dict[str, Callable[[Authority], Shown]] = {
    "good": lambda authority: authority.leaf(),
    "expired": lambda authority: authority.leaf(ends=-timedelta(hours=1)),
    "not yet valid": lambda authority: authority.leaf(begins=timedelta(hours=1)),
    "another's name": lambda authority: authority.leaf("another.test"),
    "self-signed": lambda authority: authority.leaf(own=True),
}


def cases() -> Iterator[Case]:
    """All of them."""
    verified = {
        "good": "",
        "expired": "certificate has expired",
        "not yet valid": "certificate is not yet valid",
        "another's name": "mismatch",
        "self-signed": "self-signed certificate",
    }
    for server, says in verified.items():
        yield Case(f"{server}, its authority given", server, by_authority, says)
        yield Case(
            f"{server}, another authority given",
            server,
            by_other_authority,
            "self-signed" if server == "self-signed" else "unable to get local issuer",
        )
        yield Case(
            f"{server}, nothing given",
            server,
            by_system,
            "self-signed" if server == "self-signed" else "unable to get local issuer",
        )
        yield Case(
            f"{server}, itself given as authority", server, by_itself, "" if server == "self-signed" else says
        )
        yield Case(f"{server}, pinned", server, by_pin, "")
        yield Case(f"{server}, another one pinned", server, by_wrong_pin, "the site pins")
