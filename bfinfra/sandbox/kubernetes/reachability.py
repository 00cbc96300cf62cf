"""The result of netcat's TCP connection in a container, by the world's servers and the namespace's network
policies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import ip_address, ip_network
from typing import Any

from bfinfra.sandbox.kubernetes.objects import Object, dig
from bfinfra.sandbox.kubernetes.selectors import by_selector

NETCAT = re.compile(r"\bnc\b.*-z", re.DOTALL)
WAY = re.compile(r"\S+:\d+")


def tried(container: Object) -> list[str]:
    """The "address:port" that follow a script with `nc … -z` in it; none where a container runs
    something else.
    """
    words = [str(each) for each in [*(container.get("command") or []), *(container.get("args") or [])]]
    script = next((at for at, word in enumerate(words) if NETCAT.search(word)), None)
    return [] if script is None else [word for word in words[script + 1 :] if WAY.fullmatch(word)]


def reported(
    ways: Sequence[str], pod: Object, policies: Iterable[Object], serves: Callable[[str], bool]
) -> tuple[list[str], bool]:
    """A line for each way, those that lead somewhere first, and whether all do."""
    egress = [each["spec"] for each in policies if _governs(each["spec"], pod)]
    good = [way for way in ways if serves(way) and _let_out(way, egress)]
    bad = [way for way in ways if way not in good]
    return [*(f"{way} reached" for way in good), *(f"{way} not reached" for way in bad)], not bad


def _governs(policy: Object, pod: Object) -> bool:
    """A policy without policyTypes is about what leaves only where it has rules for that."""
    default = ["Ingress", "Egress"] if policy.get("egress") else ["Ingress"]
    return "Egress" in (policy.get("policyTypes") or default) and by_selector(
        policy.get("podSelector") or {}
    )(pod)


def _let_out(way: str, egress: Sequence[Object]) -> bool:
    """Policies add up; a pod that no policy selects reaches everything."""
    host, _, port = way.rpartition(":")
    rules = (rule for policy in egress for rule in policy.get("egress") or [])
    return not egress or any(_to(rule, host) and _at(rule, int(port)) for rule in rules)


def _to(rule: Object, host: str) -> bool:
    return not rule.get("to") or any(_within(host, dig(peer, "ipBlock")) for peer in rule["to"])


def _within(host: str, block: Any) -> bool:
    """Peers that are pods or namespaces have no addresses outside of the cluster."""
    try:
        networks = (
            [ip_network(each, strict=False) for each in (block["cidr"], *(block.get("except") or []))]
            if block
            else []
        )
        found = [ip_address(host) in network for network in networks]
    except ValueError:
        return False
    return bool(found) and found[0] and not any(found[1:])


def _at(rule: Object, port: int) -> bool:
    return not rule.get("ports") or any(
        port in numbers for each in rule["ports"] for numbers in _numbers(each)
    )


def _numbers(each: Object) -> Iterator[range]:
    if each.get("protocol", "TCP") == "TCP":
        first = each.get("port")
        if first is None:
            yield range(65536)
        elif isinstance(first, int):
            yield range(first, each.get("endPort", first) + 1)
