"""Read-only means read-only: whatever only looks reaches no writing method of any server, for every site in
specs/, and needs no right to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, QUICK, SPECS, apply, made, run_context, unhurried, world

import bfinfra
from bfinfra.app import privileges, trust
from bfinfra.app.describe import describe
from bfinfra.engine import graph
from bfinfra.model.errors import BfinfraError
from bfinfra.model.plan import Plan
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.model.sources import Sources
from bfinfra.sandbox import SMALL_WORLD, Running, start, stop

READER = "reader@small.test"
Look = Callable[[Site, bfinfra.RunContext], Any]
LOOKS: dict[str, Look] = {
    "plan": lambda site, context: bfinfra.plan(site, context=context),
    "plan to destroy": lambda site, context: bfinfra.plan(site, destroy=True, context=context),
    "plan to adopt": lambda site, context: bfinfra.plan(
        site, adopt=frozenset(site.resources), context=context
    ),
    "drift": lambda site, context: bfinfra.drift(site, context=context),
    "init": lambda site, context: describe(site, context=context) if site.vcenter else None,
    "doctor": lambda site, context: bfinfra.diagnose(site, context=context),
    "trust": lambda site, context: trust.certificates(site, context=context),
    "graph": lambda site, _: graph.waits(site.resources, {}),
    "privileges": lambda site, _: privileges.privileges(site),
    "history": lambda site, _: list(bfinfra.history(site.name)),
    "kubeconfig": lambda site, context: [
        bfinfra.kubeconfig(site, str(key), context=context) for key in site.resources if _cluster(key.kind)
    ],
}


@pytest.fixture(scope="module")
def sandbox_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The small world with a reader whose password the site can name."""
    state = tmp_path_factory.mktemp("read-only")
    given = yaml.safe_load(SMALL_WORLD.read_text())
    given["env"]["READER_PASSWORD"] = {"generate": "password"}
    next(user for user in given["users"] if user["name"] == READER)["password"] = {"env": "READER_PASSWORD"}
    (state / "world.yaml").write_text(yaml.safe_dump(given))
    yield start(state / "world.yaml", state / "state", pace=0)
    stop(state / "state")


@pytest.mark.thorough("namespace", "virtual_machine")
@pytest.mark.parametrize("kind", unhurried(EXAMPLES))
def test_what_looks_at_a_kind_writes_nothing_and_a_reader_can_look_and_change_nothing(
    kind: str, sandbox: Running, tmp_path: Path
) -> None:
    looked_at_only(EXAMPLES[kind], sandbox, "plan", "drift", "doctor")
    assert made(apply(EXAMPLES[kind], sandbox))
    looked_at_only(EXAMPLES[kind], sandbox)
    if "vcenter:\n" in EXAMPLES[kind].read_text():
        changed_by_no_reader(EXAMPLES[kind], sandbox, tmp_path)


@pytest.mark.thorough
def test_what_looks_at_the_whole_poc_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    poc = start(SPECS / "worlds/singapore-poc.yaml", tmp_path / "sandbox", pace=0)
    try:
        looked_at_only(SPECS / "singapore-poc.yaml", poc, *(name for name in LOOKS if name != "kubeconfig"))
        assert made(apply(SPECS / "singapore-poc.yaml", poc))
        looked_at_only(SPECS / "singapore-poc.yaml", poc)
    finally:
        stop(tmp_path / "sandbox")


def test_a_reader_describes_what_an_administrator_describes(sandbox: Running) -> None:
    assert made(apply(EXAMPLES["bitfusion_server"], sandbox))
    site = bfinfra.load(EXAMPLES["bitfusion_server"], sandbox=sandbox)
    assert site.vcenter is not None
    password = Secret("env", "READER_PASSWORD", Sources(env=sandbox.env))
    reader = site.vcenter.model_copy(update={"username": READER, "password": password})
    known, seen = (
        describe(replace(site, resources={}, vcenter=each), context=run_context(sandbox))
        for each in (site.vcenter, reader)
    )
    assert {key.kind for key in known.resources} >= {"gpu_host", "bitfusion_server", "vm_class"}
    assert {key: each.spec for key, each in seen.resources.items()} == {
        key: each.spec for key, each in known.resources.items()
    }
    assert seen.unreadable == known.unreadable == {}


def changed_by_no_reader(path: Path, sandbox: Running, folder: Path) -> None:
    """What a reader may not even see is reported as unreadable, and is never taken for absent."""
    reading = as_reader(path, folder)
    before = world(sandbox)
    sandbox.clear_tally()
    found = bfinfra.plan(bfinfra.load(reading, sandbox=sandbox), context=run_context(sandbox))
    assert sandbox.tally()["written"] == 0
    assert [str(item.key) for item in found.pending] == [], "what stands as it should is taken for changed"
    assert not found.problems or found.unreadable, found.problems
    try:
        outcome = apply(reading, sandbox, destroy=True)
        assert not made(outcome) or not outcome.writes
    except BfinfraError as error:
        assert error.problems  # it is reported before the first write
    assert world(sandbox) == before


LOCAL = {"bitfusion_token", "client_image", "container_image"}
"""Kinds that ask no server."""


def looked_at_only(path: Path, sandbox: Running, *names: str) -> None:
    """Everything that only looks, or what is named, on the world as it is; the server counts."""
    before = world(sandbox)
    sandbox.clear_tally()
    site, context = bfinfra.load(path, sandbox=sandbox), bfinfra.RunContext(sandbox=sandbox, retry=QUICK)
    assert sandbox.tally()["total"] == 0, "what validates asks nobody"
    for name in names or LOOKS:
        answer = LOOKS[name](site, context)
        assert not isinstance(answer, Plan) or answer.site == site.name
        assert sandbox.tally()["written"] == 0, (name, sandbox.tally()["writes"])
    assert sandbox.tally()["total"] or {key.kind for key in site.resources} <= LOCAL
    assert world(sandbox) == before


def as_reader(path: Path, folder: Path) -> Path:
    """The same site, of the read-only user."""
    text = (
        path.read_text()
        .replace("username: admin@small.test", f"username: {READER}", 1)
        .replace("password: {env: VCENTER_PASSWORD}", "password: {env: READER_PASSWORD}", 1)
    )
    (folder / "manifests").symlink_to(SPECS / "manifests")
    (folder / "kinds").mkdir()
    (folder / "kinds" / path.name).write_text(text)
    return folder / "kinds" / path.name


def _cluster(kind: str) -> bool:
    return kind.endswith("_cluster") or kind == "supervisor_namespace"
