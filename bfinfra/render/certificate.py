"""A server's certificate for people, and the line that makes a site trust it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol

from bfinfra.render import data as documents
from bfinfra.render.safe import safe
from bfinfra.render.style import PLAIN, Style
from bfinfra.render.values import utc

COMPARE = (
    "Compare the SHA-256 with the one that the server's own console shows: openssl x509 -noout "
    "-fingerprint -sha256 -in its certificate "
    "(vCenter: /etc/vmware-vpx/ssl/rui.crt)."
)


class Shown(Protocol):
    """A certificate, as the renderers read it."""

    @property
    def server(self) -> str:
        """Its host:port."""

    @property
    def what(self) -> str:
        """The server's role in the site."""

    @property
    def subject(self) -> str:
        """Its subject."""

    @property
    def issuer(self) -> str:
        """Its issuer."""

    @property
    def not_before(self) -> datetime:
        """Valid from, in UTC."""

    @property
    def not_after(self) -> datetime:
        """Valid until, in UTC."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it is valid for."""

    @property
    def sha256(self) -> str:
        """Its SHA-256 fingerprint."""

    @property
    def by(self) -> str:
        """The trust with which it was compared."""

    @property
    def objection(self) -> str:
        """The reason why it is not trusted."""


def text(found: Iterable[Shown], style: Style = PLAIN) -> str:
    """A paragraph for each server. An untrusted one ends with the line that would trust it."""
    return "\n\n".join(_one(each, style) for each in found)


def data(found: Iterable[Shown]) -> dict[str, Any]:
    """Certificates of servers as JSON, each with whether the site trusts it."""
    return documents.document("trust", servers=[_data(each) for each in found])


def _one(found: Shown, style: Style) -> str:
    verdict = (
        style.paint(f"no: {safe(found.objection)}", "red") if found.objection else style.paint("yes", "green")
    )
    lines = [
        style.paint(safe(found.server), "bold") + (f" ({safe(found.what)})" if found.what else ""),
        f"  subject  {safe(found.subject)}",
        f"  issuer   {safe(found.issuer)}",
        f"  names    {safe(', '.join(found.names)) or '(none)'}",
        f"  valid    {utc(found.not_before.timestamp())} to {utc(found.not_after.timestamp())}",
        f"  SHA-256  {found.sha256}",
        f"  trusted by {safe(found.by)}: {verdict}",
    ]
    if found.objection:
        lines += [
            f"  {COMPARE}",
            "  If it is the same, this line in the site trusts this one certificate:",
            f'    trust: {{sha256: "{found.sha256}"}}',
        ]
    return "\n".join(lines)


def _data(found: Shown) -> Mapping[str, Any]:
    return {
        "server": found.server,
        "what": found.what,
        "subject": found.subject,
        "issuer": found.issuer,
        "names": list(found.names),
        "not_before": utc(found.not_before.timestamp()),
        "not_after": utc(found.not_after.timestamp()),
        "sha256": found.sha256,
        "trusted": not found.objection,
        "trusted_by": found.by,
        "objection": found.objection,
    }
