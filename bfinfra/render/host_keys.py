"""Machines' SSH host keys for people, and the line that makes a site trust one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from bfinfra.render.safe import safe
from bfinfra.render.style import PLAIN, Style

COMPARE = (
    "Compare with what the machine's own console shows: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"
)


class Shown(Protocol):
    """A machine's keys, as the renderers read them."""

    @property
    def server(self) -> str:
        """Its host:port."""

    @property
    def what(self) -> str:
        """Its address in the site."""

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """Type and fingerprint of each."""

    @property
    def objection(self) -> str:
        """The reason why it is not trusted."""


def text(found: Iterable[Shown], style: Style = PLAIN) -> str:
    """A paragraph for each machine. An untrusted one ends with the line that would trust it."""
    return "\n\n".join(_one(each, style) for each in found)


def data(found: Iterable[Shown]) -> list[dict[str, Any]]:
    """SSH host keys of machines as JSON, each with whether the site pins it."""
    return [
        {
            "server": each.server,
            "what": each.what,
            "keys": [{"type": kind, "sha256": sha256} for kind, sha256 in each.keys],
            "trusted": not each.objection,
            "objection": each.objection,
        }
        for each in found
    ]


def _one(found: Shown, style: Style) -> str:
    verdict = (
        style.paint(f"no: {safe(found.objection)}", "red") if found.objection else style.paint("yes", "green")
    )
    lines = [
        f"{style.paint(safe(found.server), 'bold')} ({safe(found.what)}), SSH",
        *(f"  {sha256}  {safe(kind)}" for kind, sha256 in found.keys),
        f"  trusted: {verdict}",
    ]
    if found.objection:
        lines += [
            f"  {COMPARE}",
            "  If one is the same, this line in the site trusts it:",
            f"    trust: {{sha256: {found.keys[0][1]}}}",
        ]
    return "\n".join(lines)
