"""Whether pods may reach the Bitfusion servers, as far as the cluster itself tells. (Egress from the Kubernetes clusters is routed to the server farm.)"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from bfinfra.backends.kubernetes.errors import safe
from bfinfra.kinds._homes import CLUSTERS, DnsLabel, Home, Places, api_of, home_of, real_name
from bfinfra.model import kind
from bfinfra.model.document import Document
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Around, Need, Readiness, Ready, Seen, failed
from bfinfra.model.refs import Key, Ref
from bfinfra.model.rights import Places as Where
from bfinfra.model.rights import may

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters

API, KIND = "networking.k8s.io/v1", "NetworkPolicy"
MOST = 3  # blocked paths told
PORTS = (56001, 55001, 45201)  # control, dispatcher, the first of the data path
Port = Annotated[int, Field(ge=1, le=65535)]
Policy = Mapping[str, Any]


class Spec(kind.Spec):
    """What a user writes for one path."""

    cluster: Annotated[str, Ref(*CLUSTERS)]
    """Cluster, or supervisor namespace, that the pods run in."""
    namespace: Annotated[DnsLabel, Ref("namespace", optional=True)] | None = None
    """Their namespace; empty = default, or the supervisor namespace itself."""
    pods: dict[str, str] = Field(default_factory=dict)
    """Their labels; without any: pods that no policy picks by labels."""
    token: Annotated[str, Ref("bitfusion_token")] | None = None
    """The token whose servers they speak to."""
    addresses: tuple[Annotated[str, Field(pattern=r"^[0-9A-Fa-f.:]+$")], ...] = ()
    """Further addresses."""
    ports: Annotated[tuple[Port, ...], Field(min_length=1)] = PORTS
    """TCP ports; the data path begins at 45201: write those that your version of Bitfusion uses."""

    @model_validator(mode="after")
    def _somewhere(self) -> Spec:
        if not self.token and not self.addresses:
            raise ValueError("give token or addresses")
        for address in self.addresses:
            ipaddress.ip_address(address)
        return self


@dataclass(frozen=True, kw_only=True)
class State(kind.State):
    """What the cluster says: `blocked`: `address:port`, and why; `checked`: how many paths were looked at."""

    blocked: tuple[tuple[str, str], ...] = ()
    checked: int = 0

    @property
    def told(self) -> str:
        """What is blocked, in words."""
        more = f"; and {len(self.blocked) - MOST} more" if len(self.blocked) > MOST else ""
        return "; ".join(f"{where}: {why}" for where, why in self.blocked[:MOST]) + more


class NetworkPath(kind.Source[Spec, State]):
    """A check: no network policy keeps pods from the Bitfusion servers. Writes nothing."""

    document = Document.CONSOLIDATED
    looks = (may("list", "networkpolicies.networking.k8s.io", "namespace"),)

    def __init__(self, clusters: Clusters) -> None:
        self._places = Places(clusters)

    def observe(self, wanted: Mapping[str, Spec | None], needs: Mapping[Key, Need], *, others: bool = True) -> Seen:
        """The policies of each namespace, one list a namespace; where the cluster isn't there yet, nothing is said."""
        asked = {name: spec for name, spec in wanted.items() if spec is not None}
        if not asked:
            return Seen({})
        spaces = {name: _namespace(spec, needs) for name, spec in asked.items()}

        def read(home: Home) -> dict[str, list[dict[str, Any]]]:
            here = {home.namespace or spaces[name] for name, spec in asked.items() if home_of(spec.cluster, needs) == home.key}
            return {space: home.cluster.list(API, KIND, space) for space in sorted(here)}

        answers = self._places.ask({name: spec.cluster for name, spec in asked.items()}, needs, read, others=others)
        states = {}
        for name, spec in asked.items():
            key = home_of(spec.cluster, needs)
            if key is not None and key in answers.found:
                policies = answers.found[key][answers.homes[key].namespace or spaces[name]]
                states[name] = judge(spec, _servers(spec, needs), policies)
        return Seen(states, unreadable=answers.unreadable)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, around: Around) -> Sequence[kind.Step]:
        """None; Refusal where a policy is in the way, before anything is written."""
        if spec is not None and state is not None and state.blocked:
            raise Refusal(f"pods in {spec.cluster} can't reach the Bitfusion servers", why=state.told, next="let a network policy allow this egress")
        return ()

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, Need], datacenter: str) -> Where:
        """The namespace."""
        return {"namespace": (api_of(needs["cluster"], spec.namespace or "default", needs.get("namespace")),)}

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Looked at; a cluster that this run made is looked at here first."""
        return failed(state.told) if state.blocked else Readiness(Ready.READY, note=f"{state.checked} paths, no policy in the way")


def judge(spec: Spec, servers: Iterable[str], policies: Sequence[Policy]) -> State:
    """What the policies of a namespace say of TCP from its pods to the servers. Pure."""
    mine = [each for each in policies if _selects(each, spec.pods)]
    paths = [(server, port) for server in servers for port in spec.ports]
    if not mine:
        return State(checked=len(paths))
    names = ", ".join(sorted(safe(each["metadata"].get("name"), 63) for each in mine))
    blocked = [(f"{server}:{port}", f"allowed by none of {names}") for server, port in paths if not any(_allows(each, server, port) for each in mine)]
    return State(blocked=tuple(blocked), checked=len(paths))


def _namespace(spec: Spec, needs: Mapping[Key, Need]) -> str:
    written = spec.namespace or "default"
    return real_name(written, spec.cluster, needs.get(Key("namespace", written)))


def _servers(spec: Spec, needs: Mapping[Key, Need]) -> tuple[str, ...]:
    token = needs.get(Key("bitfusion_token", spec.token)) if spec.token else None
    known = (host for host, _ in token.state.servers) if token is not None and token.state is not None else ()
    return tuple(dict.fromkeys((*known, *spec.addresses)))


def _selects(policy: Policy, labels: Mapping[str, str]) -> bool:
    """Whether it governs what leaves pods with these labels."""
    spec = policy.get("spec") or {}
    types = spec.get("policyTypes") or (["Ingress", "Egress"] if "egress" in spec else ["Ingress"])
    selector = spec.get("podSelector") or {}
    same = all(labels.get(name) == value for name, value in (selector.get("matchLabels") or {}).items())
    return "Egress" in types and same and all(_matches(each, labels) for each in selector.get("matchExpressions") or ())


def _matches(wanted: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, among = labels.get(str(wanted.get("key"))), wanted.get("values") or ()
    return {"In": value in among, "NotIn": value not in among, "Exists": value is not None, "DoesNotExist": value is None}.get(str(wanted.get("operator")), False)


def _allows(policy: Policy, server: str, port: int) -> bool:
    return any(_to(rule.get("to"), server) and _at(rule.get("ports"), port) for rule in policy["spec"].get("egress") or ())


def _to(peers: Any, server: str) -> bool:
    """Whether a server outside the cluster is among them: selectors pick pods only. A name is nobody's block of addresses."""
    if not peers:
        return True
    try:
        address = ipaddress.ip_address(server)
    except ValueError:
        return False
    blocks = [each["ipBlock"] for each in peers if each.get("ipBlock")]
    return any(address in ipaddress.ip_network(b["cidr"], strict=False) and not any(address in ipaddress.ip_network(e, strict=False) for e in b.get("except") or ()) for b in blocks)


def _at(ports: Any, port: int) -> bool:
    """Whether the TCP port is among them; names are those of containers, which a server outside has none of."""
    def one(each: Mapping[str, Any]) -> bool:
        first = each.get("port")
        return each.get("protocol", "TCP") == "TCP" and (first is None or (isinstance(first, int) and first <= port <= (each.get("endPort") or first)))

    return not ports or any(one(each) for each in ports)
