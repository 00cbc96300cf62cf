from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from kinds.of_several import of_several
from pydantic import ValidationError

from bfinfra.kinds.source.bitfusion_token.kind import BitfusionToken, State
from bfinfra.kinds.source.bitfusion_token.spec import Spec
from bfinfra.model.awaited import Awaited
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key, edges
from bfinfra.model.sources import LocalFile
from bfinfra.sandbox.factories.token import BROKEN, make_token

LATE = datetime(2099, 1, 1, tzinfo=UTC)


def look(path, broken=""):
    make_token(path, broken=broken)
    spec = Spec.model_validate({"source": {"tar": LocalFile("t.tar", path)}})
    return spec, BitfusionToken().observe({"t": spec}, {})


def decide(spec, observation):
    return BitfusionToken.steps(
        "t",
        spec,
        observation.states.get("t"),
        PlanContext(Mark("s", "bitfusion_token/t"), facts=observation.facts),
    )


def test_a_good_token_has_no_steps_and_shows_its_servers_but_not_its_content(tmp_path):
    spec, observation = look(tmp_path / "t.tar")
    assert decide(spec, observation) == ()
    assert observation.states["t"].servers == (("172.24.210.80", 56001),)
    assert "BEGIN" not in repr(observation)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_bad_or_expired_token_is_refused_at_its_source_with_what_to_do(tmp_path, broken):
    with pytest.raises(Refusal) as refused:
        decide(*look(tmp_path / "t.tar", broken))
    assert refused.value.field == "source"
    assert refused.value.problems[0].next


@pytest.mark.parametrize("source", [{}, {"tar": "a", "folder": "b"}])
def test_exactly_one_source(source):
    with pytest.raises(ValidationError):
        Spec.model_validate({"source": source})


def leads(addresses, *, networks, ip="", names=("bf-01",)):
    """A token that names these addresses, decided on with servers that have those."""
    wanted = Spec.model_validate({"source": {"tar": "t.tar"}, "servers": list(names)})
    token = State(
        path="t.tar", digest="d", not_after=LATE, servers=tuple((each, 56001) for each in addresses)
    )
    server = SimpleNamespace(networks={str(n): SimpleNamespace(ip=each) for n, each in enumerate(networks)})
    existing = SimpleNamespace(answers_at=lambda: ip) if ip else None
    needs = {
        f"servers.{n}": ResolvedRef(Key("bitfusion_server", name), server, existing)
        for n, name in enumerate(names)
    }
    return BitfusionToken.steps("t", wanted, token, PlanContext(Mark("s", "bitfusion_token/t"), needs))


@pytest.mark.parametrize(
    ("addresses", "networks", "ip"),
    [
        (["10.0.0.5"], ["10.0.0.5"], ""),
        (["10.0.0.9", "10.0.0.5"], ["10.0.0.5"], ""),
        (["10.0.0.5"], ["10.1.0.5", "10.0.0.5"], ""),
        (["bf-01.test"], ["10.0.0.5"], ""),
        (["10.0.0.9"], ["10.0.0.5", ""], ""),
        (["10.0.0.9"], [""], ""),
        (["FD00::5"], ["fd00:0::5"], ""),
        (["10.0.0.5"], ["10.0.0.5"], "10.0.0.7"),
        (["10.0.0.7"], [], "10.0.0.7"),
    ],
)
def test_a_token_that_leads_to_its_server_or_may_do_so_is_taken(addresses, networks, ip):
    assert leads(addresses, networks=networks, ip=ip) == ()


def test_a_token_of_other_servers_is_refused_with_whose_it_is():
    with pytest.raises(Refusal, match="the token does not lead to bitfusion_server/bf-02") as refused:
        leads(["10.0.0.9", "10.0.0.8"], networks=["10.0.0.5"], names=("bf-02",))
    (problem,) = refused.value.problems
    assert (refused.value.field, problem.why) == (
        "servers.0",
        "it names 10.0.0.8, 10.0.0.9, and bf-02 has 10.0.0.5",
    )
    assert problem.next.startswith("download the token again, in the vCenter that bf-02 registered with")


@of_several("bitfusion_token.servers")
def test_a_token_must_lead_to_each_of_its_servers():
    token = State(path="t.tar", digest="d", not_after=LATE, servers=(("10.0.0.5", 56001),))
    wanted = Spec.model_validate({"source": {"tar": "t.tar"}, "servers": ["bf-01", "bf-02"]})
    needs = {
        edge.field: ResolvedRef(edge.keys[0], SimpleNamespace(networks={"0": SimpleNamespace(ip=ip)}), None)
        for edge, ip in zip(edges(wanted), ("10.0.0.5", "10.0.0.6"), strict=True)
    }
    with pytest.raises(Refusal, match="does not lead to bitfusion_server/bf-02") as refused:
        BitfusionToken.steps("t", wanted, token, PlanContext(Mark("s", "bitfusion_token/t"), needs))
    assert refused.value.field == "servers.1"


@pytest.mark.parametrize("ip", ["10.0.0.7", "10.0.0.5"])
def test_a_token_of_the_address_that_a_server_loses_is_refused_before_and_after(ip):
    with pytest.raises(Refusal, match="does not lead to bitfusion_server/bf-01") as refused:
        leads(["10.0.0.7"], networks=["10.0.0.5"], ip=ip)
    way = "move the token's file away" if ip == "10.0.0.7" else "download the token again"
    assert refused.value.problems[0].next.startswith(way)


def test_a_token_that_is_not_there_yet_is_awaited(tmp_path):
    spec = Spec.model_validate({"source": {"tar": LocalFile("t.tar", tmp_path / "t.tar")}})
    observation = BitfusionToken().observe({"t": spec}, {})
    with pytest.raises(Awaited, match=r"t\.tar is not there yet") as awaited:
        decide(spec, observation)
    assert (awaited.value.field, observation.states) == ("source.tar", {})
