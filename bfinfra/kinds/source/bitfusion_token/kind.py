"""The kind bitfusion_token: reads tokens, and checks them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from bfinfra.backends.bitfusion import Token, read_token
from bfinfra.kinds.source.bitfusion_token.spec import Spec
from bfinfra.model import kind, resource
from bfinfra.model.awaited import Absent, absent, held
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Observation
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.step import Step


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """A token that was read and checked. `digest`: of its content; `not_after`: when its CA ends, in UTC."""

    path: str
    digest: str
    not_after: datetime
    servers: tuple[tuple[str, int], ...]


class BitfusionToken(kind.Source[Spec, State]):
    """A Bitfusion client token."""

    document = Document.SINGAPORE_POC
    undescribed = "it is a file, and secret"
    alone = True

    def __init__(self) -> None:
        self._problems: dict[str, str | Absent] = {}

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads the files. The facts have, by name, why a token can't be used; Absent if it doesn't exist
        yet.
        """
        states: dict[str, State] = {}
        for name, spec in wanted.items():
            if spec is None:
                continue
            if problem := absent(spec.source.file, spec.awaits[spec.source.field]):
                self._problems[name] = problem
                continue
            try:
                token = read_token(spec.source.path)
            except ValueError as error:
                self._problems[name] = str(error)
                continue
            self._problems[name] = _expired(token)
            states[name] = State(
                path=str(spec.source.path),
                digest=token.digest,
                not_after=token.not_after,
                servers=token.servers,
            )
        return Observation(states, dict(self._problems))

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """No steps. Raises Refusal for a token that can't be used, Awaited for one that doesn't exist yet."""
        problem = (context.facts or {}).get(name)
        if spec is not None and isinstance(problem, Absent):
            raise held(problem, spec.source.field)
        if spec is not None and problem:
            what, _, remedy = problem.partition(": ")
            raise Refusal("the token can't be used", field="source", why=what, next=remedy)
        if spec is not None and state is not None:
            _check_servers(
                state, {field: need for field, need in context.needs.items() if field.startswith("servers.")}
            )
        return ()


AGAIN = "download the token again, in the vCenter that {0} registered with; or correct servers"
MOVING = "move the token's file away, apply, so that {0} gets its new address, then download the token again"


def _check_servers(token: State, servers: Mapping[str, ResolvedRef]) -> None:
    """Raises Refusal if all addresses of a server are known, and the token has none of them. Those that the
    site gives it count, also while it still has others: else the plan after the change would refuse it.
    """
    addresses = {_ip(host) for host, _ in token.servers}
    for field, need in servers.items():
        own = [network.ip for network in need.spec.networks.values()] if need.spec else []
        reported = need.state.answers_at() if need.state else ""
        has = {_ip(each) for each in own or (reported,) if each}
        if None in addresses or not all(own) or not has or has & addresses:
            continue  # a host name may resolve to anything, and DHCP may still assign an address
        raise Refusal(
            f"the token does not lead to {need.key}",
            field=field,
            why=f"it names {_listed(addresses)}, and {need.key.name} has {_listed(has)}",
            next=MOVING.format(need.key.name) if _ip(reported) in addresses else AGAIN.format(need.key.name),
        )


def _ip(text: str) -> str | None:
    """An IP address in canonical form; None for a host name."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


def _listed(found: set[str | None]) -> str:
    return ", ".join(sorted(each for each in found if each))


def _expired(token: Token) -> str:
    if token.not_after > datetime.now(UTC):
        return ""
    return (
        f"its certificate authority (ca.crt) ended on {token.not_after:%Y-%m-%d %H:%M} UTC: download a new "
        "token"
    )
