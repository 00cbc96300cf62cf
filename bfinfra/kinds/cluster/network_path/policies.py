"""Judges NetworkPolicies: which TCP they allow from a namespace's pods to servers outside the
cluster. Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bfinfra.backends.words import safe
from bfinfra.kinds.cluster.network_path.spec import Spec
from bfinfra.model.records import dataclass

MOST = 3  # most blocked paths in a message
Policy = Mapping[str, Any]


@dataclass(frozen=True)
class Judged:
    """`blocked`: `address:port` → why; `checked`: the number of paths that were checked."""

    blocked: tuple[tuple[str, str], ...] = ()
    checked: int = 0

    @property
    def blocked_by(self) -> str:
        """The blocked addresses, in words."""
        more = f"; and {len(self.blocked) - MOST} more" if len(self.blocked) > MOST else ""
        return "; ".join(f"{where}: {why}" for where, why in self.blocked[:MOST]) + more


def judge(spec: Spec, servers: Iterable[str], policies: Sequence[Policy]) -> Judged:
    """Return which TCP a namespace's policies allow from its pods to the servers."""
    mine = [each for each in policies if _selects(each, spec.pods)]
    paths = [(server, port) for server in servers for port in spec.ports]
    if not mine:
        return Judged(checked=len(paths))
    names = ", ".join(sorted(safe(each["metadata"].get("name"), 63) for each in mine))
    blocked = [
        (f"{server}:{port}", f"allowed by none of {names}")
        for server, port in paths
        if not any(_allows(each, server, port) for each in mine)
    ]
    return Judged(blocked=tuple(blocked), checked=len(paths))


def _selects(policy: Policy, labels: Mapping[str, str]) -> bool:
    """Return whether the policy governs egress of pods with these labels."""
    spec = policy.get("spec") or {}
    types = spec.get("policyTypes") or (["Ingress", "Egress"] if "egress" in spec else ["Ingress"])
    selector = spec.get("podSelector") or {}
    same = all(labels.get(name) == value for name, value in (selector.get("matchLabels") or {}).items())
    return (
        "Egress" in types
        and same
        and all(_matches(each, labels) for each in selector.get("matchExpressions") or ())
    )


def _matches(wanted: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, among = labels.get(str(wanted.get("key"))), wanted.get("values") or ()
    return {
        "In": value in among,
        "NotIn": value not in among,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }.get(str(wanted.get("operator")), False)


def _allows(policy: Policy, server: str, port: int) -> bool:
    return any(
        _to(rule.get("to"), server) and _at(rule.get("ports"), port)
        for rule in policy["spec"].get("egress") or ()
    )


def _to(siblings: Any, server: str) -> bool:
    """Return whether a peer allows a server outside the cluster. Selectors match pods only; a host name is in
    no block of addresses.
    """
    if not siblings:
        return True
    try:
        address = ipaddress.ip_address(server)
    except ValueError:
        return False
    blocks = [each["ipBlock"] for each in siblings if each.get("ipBlock")]
    return any(
        address in ipaddress.ip_network(b["cidr"], strict=False)
        and not any(address in ipaddress.ip_network(e, strict=False) for e in b.get("except") or ())
        for b in blocks
    )


def _at(ports: Any, port: int) -> bool:
    """Return whether the TCP port is among them. Port names are those of containers, so a server outside has
    none.
    """

    def one(each: Mapping[str, Any]) -> bool:
        first = each.get("port")
        return each.get("protocol", "TCP") == "TCP" and (
            first is None or (isinstance(first, int) and first <= port <= (each.get("endPort") or first))
        )

    return not ports or any(one(each) for each in ports)
