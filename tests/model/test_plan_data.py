"""A step as plain data: what a saved plan, the journal and JSON hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bfinfra.kinds.cluster.base.replicated_secret.decide import Write
from bfinfra.kinds.cluster.mpi_job.decide import WriteRecord
from bfinfra.kinds.cluster.nvidia_device_plugin.kind import Clear
from bfinfra.kinds.image.container_image import Commit, Forget
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.plan import Action, Plan, agrees, derive, plain, step_data
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.resource import Part, State
from bfinfra.model.secret import Secret
from bfinfra.model.step import Disruption, Step, Versioned
from bfinfra.model.units import Bytes
from bfinfra.render import notebook

HOME = Endpoint(server="sv.poc", namespace="ml", guest="tkc")


def test_a_commit_keeps_its_name_of_earlier_releases_so_that_their_plans_apply() -> None:
    commit = Commit(name="trainer", mark=Mark("poc", "container_image/trainer"))
    assert step_data(commit)["step"] == "Seal"


def test_a_record_keeps_its_name_of_earlier_releases() -> None:
    record = WriteRecord(what="mnist", namespace="ml", cluster="tkc", home=HOME, manifest={})
    assert step_data(record)["step"] == "Note"


def test_fields_keep_their_names_of_earlier_releases() -> None:
    write = Write(
        what="token",
        cluster="tkc",
        namespace="ml",
        home=HOME,
        mark=Mark("poc", "token_secret/t"),
        names=("ca",),
        source="token.tar",
        existing=("ca",),
    )
    assert step_data(write)["fields"]["standing"] == ["ca"]
    clear = Clear(cluster="tkc", namespace="ml", home=HOME, precondition={"uid": "1"})
    assert step_data(clear)["fields"]["seen"] == {"uid": "1"}


def test_another_step_has_the_name_of_its_class() -> None:
    assert step_data(Forget(name="trainer"))["step"] == "Forget"


class Size(Part):
    memory: Bytes


@dataclass(frozen=True, kw_only=True)
class Fill(Versioned):
    """fill {name}"""

    name: str
    content: Any


@dataclass(frozen=True, kw_only=True)
class Rebuild(Step):
    """build it anew"""

    disruption = Disruption.REPLACE


def test_a_step_is_told_whole_but_for_the_version_that_its_server_counts() -> None:
    assert step_data(Fill(name="tank", content=1, version="7", changes=(Change("litres", 1, 2),))) == {
        "step": "Fill",
        "title": "fill tank",
        "fields": {"name": "tank", "content": 1},
        "changes": [{"field": "litres", "now": 1, "wanted": 2}],
    }


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Secret("env", "PASSWORD"), {"secret": {"env": "PASSWORD"}}),
        (Unknown(Key("tank", "a"), "address"), {"later": ["tank/a", "address"]}),
        (Size(memory=1 << 30), {"memory": "1GiB"}),
        (Path("/folder/file"), "/folder/file"),
        (frozenset({8, 9, 10}), [10, 8, 9]),
        (("b", "a"), ["b", "a"]),
        ({1: None}, {"1": None}),
        ([True, 1.5], [True, 1.5]),
    ],
)
def test_whatever_a_step_holds_is_told_as_json(value: object, told: object) -> None:
    assert plain(value) == told


@pytest.mark.parametrize(
    ("announced", "fresh", "same"),
    [
        ({"later": ["tank/a", "address"]}, "10.0.0.1", True),
        ({"at": {"later": ["tank/a", "address"]}, "size": 1}, {"at": None, "size": 1}, True),
        ({"labels": {"later": "blue"}}, {"labels": {"later": "red"}}, False),
        ({"size": 1}, {"size": 2}, False),
        ({"size": 1}, {"size": 1, "more": 1}, False),
        ({"size": 1}, [1], False),
        ([{"later": ["tank/a", "address"]}, 2], [1, 2], True),
        ([1, 2], [1, 3], False),
        ([1], [1, 2], False),
        ([1], 1, False),
    ],
)
def test_only_what_was_announced_as_known_later_may_have_become_anything(
    announced: object, fresh: object, same: bool
) -> None:
    assert agrees(announced, fresh) is same


FILL, REBUILD = (Fill(name="tank", content=1),), (Fill(name="tank", content=1), Rebuild())


@pytest.mark.parametrize(
    ("spec", "state", "steps", "action"),
    [
        ("in the file", None, FILL, Action.CREATE),
        ("in the file", State(going=True), FILL, Action.CREATE),
        ("in the file", State(), FILL, Action.UPDATE),
        ("in the file", State(), REBUILD, Action.REPLACE),
        ("in the file", State(), (), Action.KEEP),
        (None, State(), FILL, Action.DELETE),
        (None, State(), REBUILD, Action.DELETE),
        (None, State(), (), Action.KEEP),
    ],
)
def test_the_action_is_what_the_steps_amount_to(
    spec: str | None, state: State | None, steps: tuple[Step, ...], action: Action
) -> None:
    assert derive(spec, state, steps) is action


def test_what_bfinfra_does_not_manage_is_read_and_not_kept() -> None:
    assert derive("in the file", State(), (), managed=False) is Action.READ


def test_a_notebook_shows_a_plan_as_a_page() -> None:
    plan = Plan("s", ())
    assert plan._repr_html_() == notebook.plan(plan)
