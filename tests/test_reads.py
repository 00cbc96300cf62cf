"""How often a survey asks each server depends on what kinds there are, not on how many resources: no kind
asks for one at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grown
import pytest

import bfinfra
from bfinfra.app import wiring
from bfinfra.backends.vcenter import properties
from bfinfra.engine.observe import survey
from bfinfra.engine.retry import RetryPolicy
from bfinfra.sandbox import Running, start, stop

MANY = 200
PARTS = 2 * (2 * properties.ASIDE - 1)  # hosts and machines, each read in up to so many requests side by side
STANDING = 6  # of each kind: more than are asked for one by one

IN_A_CLUSTER = Path(__file__).parents[1] / "specs" / "kinds" / "registry_credential.yaml"
Make = Callable[[Path, int], Path]
VIEW = "CreateContainerView"
"""A read that begins while another uses the session's view makes one of its own."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    yield from running(tmp_path_factory.mktemp("large"), MANY)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "home"))
    yield from running(tmp_path, STANDING)


def running(folder: Path, hosts: int) -> Iterator[Running]:
    """A world with so many hosts, without waiting times."""
    yield start(grown.world(folder, hosts), folder / "state", pace=0)
    stop(folder / "state")


def test_a_plan_of_200_hosts_and_servers_asks_as_often_as_one_of_two_but_for_what_is_asked_side_by_side(
    large: Running, tmp_path: Path
) -> None:
    few, often = asked(grown.servers, tmp_path, 2, large)
    many, as_often = asked(grown.servers, tmp_path, MANY, large)
    assert (few, many) == (2 * 2, 2 * MANY)
    assert often.keys() == as_often.keys()
    assert all(0 <= as_often[server] - often[server] <= PARTS for server in often)


def test_hosts_and_servers_take_so_many_requests_and_no_more(
    large: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a round trip that a distant vCenter makes felt; other kinds' are their own."""
    seen: dict[str, Counter[str]] = {}
    site = bfinfra.load(grown.servers(tmp_path, 2), sandbox=large)
    monkeypatch.setattr(wiring, "surveyed", lambda _: ["gpu_host", "bitfusion_server"])
    with wiring.bound_kinds(
        site,
        bfinfra.RunContext(sandbox=large, middleware=(grown.counting(seen),)),
        site.resources,
        read_only=True,
    ) as bound:
        survey(bound.kinds, site.resources, RetryPolicy())
    entry = {"GET /sdk/vimServiceVersions.xml": 1, "RetrieveServiceContent": 1, "Login": 1, "Logout": 1}
    made = seen["vc.small.test"].pop(VIEW)
    assert made <= 3
    views = {grown.OF_ALL: 3}  # hosts' notes, places, marks
    single = {
        "RetrievePropertiesEx": 5
        # the names of attributes, which show other kinds; the hosts; the machine that stands on them; as one is
        # to be made, the memory of its host and what is reserved there
    }
    assert seen == {"vc.small.test": entry | views | single}


def test_a_plan_of_200_resources_in_a_cluster_asks_no_more_for_each(large: Running, tmp_path: Path) -> None:
    """Of a few places that are empty each is looked at; of many, once for all of a kind."""
    few, often = asked(grown.in_a_cluster, tmp_path, 4, large)
    many, as_often = asked(grown.in_a_cluster, tmp_path, MANY // 4, large)
    assert (few, many) == (4 * 4 + 2, MANY + 2)
    assert as_often == often


@pytest.mark.thorough
@pytest.mark.parametrize("make", [grown.servers, grown.in_a_cluster], ids=["servers", "in a cluster"])
def test_six_of_each_kind_are_read_with_as_many_requests_as_two(
    make: Make, small: Running, tmp_path: Path
) -> None:
    often = {}
    for count in (2, STANDING):
        allow = bfinfra.Allow(every_disruption=True)
        site = bfinfra.load(make(tmp_path, count), sandbox=small)
        outcome = bfinfra.apply(
            site, approve=lambda _, allow=allow: allow, context=bfinfra.RunContext(sandbox=small)
        )
        assert outcome.ending == "done", [
            str(each.problem) for each in outcome.endings.values() if each.problem
        ]
        plan, seen = grown.reads(make(tmp_path, count), small)
        assert not any(item.steps for item in plan.items)
        often[count] = {server: counts.total() - counts[VIEW] for server, counts in seen.items()}
        assert all(counts[VIEW] <= counts[grown.OF_ALL] for counts in seen.values())
    assert often[STANDING] == often[2]


def asked(make: Make, folder: Path, count: int, world: Running) -> tuple[int, dict[str, int]]:
    """How many resources the plan has, and how often it asked each server."""
    plan, seen = grown.reads(make(folder, count), world)
    assert not plan.problems
    return len(plan.items), {server: counts.total() for server, counts in seen.items()}


@pytest.mark.thorough
def test_an_apply_of_twice_the_servers_asks_twice_as_often_and_for_everything_as_often_as_before(
    small: Running, tmp_path: Path
) -> None:
    """No look before or after a step asks for what stands elsewhere: each server costs what it costs
    alone.
    """
    often = {}
    for count in (2, 4):
        often[count] = sent(grown.servers(tmp_path, count), small)
        sent(grown.servers(tmp_path, count), small, destroy=True)
    assert often[4][grown.OF_ALL] == often[2][grown.OF_ALL] > 0
    assert often[4].total() <= 2 * often[2].total()


@pytest.mark.thorough
def test_an_apply_in_a_cluster_lists_the_secrets_of_several_resources_and_asks_for_none_by_name(
    small: Running, tmp_path: Path
) -> None:
    """Whatever there is of them: the survey lists ours, and the names of all; the last look, ours for each of
    the two kinds.
    """
    for count in (2, 4):
        asked = sent(grown.in_a_cluster(tmp_path, 2 * count), small)
        sent(grown.in_a_cluster(tmp_path, 2 * count), small, destroy=True)
        assert asked["GET /api/v1/secrets"] == 4
        assert not [
            each for each in asked if each.startswith("GET /api/v1/namespaces/") and "/secrets/" in each
        ]


def test_an_apply_asks_a_cluster_that_is_only_named_for_its_version_once(
    small: Running, tmp_path: Path
) -> None:
    asked = sent(grown.in_a_cluster(tmp_path, 1), small)
    assert asked["GET /version"] == 1


def sent(path: Path, sandbox: Running, *, destroy: bool = False) -> Counter[str]:
    """What an apply or a destroy of a site asks."""
    asked: dict[str, Counter[str]] = {}
    context = bfinfra.RunContext(sandbox=sandbox, middleware=(grown.counting(asked),))
    allow = bfinfra.Allow(every_disruption=True, every_delete=True)
    outcome = bfinfra.apply(
        bfinfra.load(path, sandbox=sandbox), destroy=destroy, approve=lambda _: allow, context=context
    )
    assert outcome.ending == "done", [str(each.problem) for each in outcome.endings.values() if each.problem]
    return sum(asked.values(), Counter())


def test_a_survey_lists_each_sort_of_object_in_a_cluster_once(sandbox: Running) -> None:
    """Kinds of resources that make the same sort share the list."""
    sandbox.reset()
    seen: dict[str, Counter[str]] = {}
    context = bfinfra.RunContext(sandbox=sandbox, middleware=(grown.counting(seen),))
    bfinfra.drift(bfinfra.load(str(IN_A_CLUSTER), sandbox=sandbox), context=context)
    lists = Counter(
        {
            request: times
            for server in seen.values()
            for request, times in server.items()
            if request.partition(" ")[2].rpartition("/")[2] in ("secrets", "configmaps", "jobs")
        }
    )
    assert lists
    assert set(lists.values()) == {1}, lists


def test_a_survey_asks_a_vcenter_for_its_custom_attributes_once_for_all_kinds(
    small: Running, tmp_path: Path
) -> None:
    """Settings of hosts, adapters and clusters, and resource pools, are noted in them. The hosts' own notes
    come with the hosts.
    """
    asked: list[bytes] = []

    class Noting:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def handle_request(self, request: Any) -> Any:
            content = request.content
            if b"CustomFieldsManager" in content and not (
                b"ContainerView" in content or b"HostSystem" in content
            ):
                asked.append(request.content)
            return self._inner.handle_request(request)

        def close(self) -> None:
            self._inner.close()

    site = bfinfra.load(grown.servers(tmp_path, 2), sandbox=small)
    bfinfra.plan(site, context=bfinfra.RunContext(sandbox=small, middleware=(Noting,)))
    assert len(asked) == 1
