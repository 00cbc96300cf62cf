from __future__ import annotations

from typing import Any

import pytest
from kinds.servers import MARK, spec

from bfinfra.engine.graph import waits
from bfinfra.kinds.vcenter.bitfusion_server.checks import check_group
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import Refusal
from bfinfra.model.refs import Key


def group(**firsts: str | None) -> Any:
    """Servers by name, each with the first server that it names."""
    return {name: spec(first=first) for name, first in firsts.items()}


def judge(name: str, servers: Any) -> None:
    first = servers[name].first
    needs = {"first": ResolvedRef(Key("bitfusion_server", first), servers.get(first), None)} if first else {}
    check_group(
        name,
        servers[name],
        PlanContext(MARK, needs, {peer: (other, None) for peer, other in servers.items() if peer != name}),
    )


@pytest.mark.parametrize(
    "servers",
    [group(a=None), group(a=None, b="a", c="a"), group(a=None, b="a", c="a", d="a"), group(a=None, b=None)],
)
def test_one_three_or_more_servers_are_a_group(servers):
    for name in servers:
        judge(name, servers)


@pytest.mark.parametrize(
    ("servers", "says"),
    [
        (group(a=None, b="a"), "a group of 2 servers"),
        (group(a=None, c="a", b="c", d="c"), "c is not the first server of a group"),
        (group(b="b"), "can't come after itself"),
    ],
)
def test_two_servers_and_a_chain_are_not(servers, says):
    with pytest.raises(Refusal, match=says) as refused:
        judge("b", servers)
    assert refused.value.field == "first"


def test_the_first_server_comes_first():
    wanted = {Key("bitfusion_server", name): each for name, each in group(b="a", c="a", a=None).items()}
    order = waits(wanted, {})
    assert Key("bitfusion_server", "a") in order[Key("bitfusion_server", "b")]
    assert not order[Key("bitfusion_server", "a")]
