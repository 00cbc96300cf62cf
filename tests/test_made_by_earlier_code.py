"""What an earlier bfinfra made is known to this one: nothing to do, no drift, and it goes without a trace.

`tests/before/` holds the state of sandboxes after an apply by the code of 2026-11-23, before its modules and names
moved: the marks on their objects are what that code wrote.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kinds.lifecycle import SPECS, apply, drift, endings, made, plan, world

from bfinfra.model.plan import Action
from bfinfra.sandbox import Running, start, stop

BEFORE = Path(__file__).with_name("before")
TESTS = Path(__file__).parent
POC = re.sub(r"(?m)^client_image:\n(?:[ #].*\n|\n)*", "", (SPECS / "singapore-poc.yaml").read_text())
CHAIN = (TESTS / "kinds" / "chain.yaml").read_text()
CERTIFICATES = re.compile(r"\"ca\.crt\": \"[^\"]*\"")
CARDS = re.compile(r"\"deviceType\": \[[^\]]*\],?\s*")
"""The sandbox has given each card of a host a type and a mode since."""
NEW = ("dnsConfig", "graphicsInfo")
"""What the sandbox has given hosts since."""
DECLARED = ("CustomResourceDefinition",)
SITES = {
    "singapore-poc": (POC, "singapore-poc.yaml"),
    "chain": (CHAIN.replace("../../specs/manifests", "manifests"), "small.yaml"),
}


@pytest.fixture(params=SITES)
def stands(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Running]]:
    """A site's file, and a sandbox in which an earlier bfinfra made it."""
    text, its_world = SITES[request.param]
    state = tmp_path / "state"
    state.mkdir(0o700)
    (state / "seed").write_bytes(bytes(32))
    (state / "state.json").write_bytes(gzip.decompress((BEFORE / f"{request.param}.json.gz").read_bytes()))
    shutil.copytree(SPECS / "manifests", tmp_path / "manifests")
    (tmp_path / "site.yaml").write_text(text)
    yield tmp_path / "site.yaml", start(SPECS / "worlds" / its_world, state, pace=0)
    stop(state)


@pytest.mark.thorough
def test_there_is_nothing_to_do_and_no_drift_and_a_destroy_leaves_nothing(
    stands: tuple[Path, Running],
) -> None:
    site, sandbox = stands
    assert [
        item.key for item in plan(site, sandbox).items if item.action not in (Action.KEEP, Action.READ)
    ] == []
    report = drift(site, sandbox)
    assert (report.alarming, report.problems) == ((), ())
    gone = apply(site, sandbox, destroy=True)
    assert made(gone), endings(gone)
    left = without_what_is_new(sandbox)
    sandbox.reset()
    assert left == without_what_is_new(sandbox)


def without_what_is_new(sandbox: Running) -> str:
    """All that the sandbox holds, but for its authority, which is made anew with each state, cards, and what
    supervisors declare.
    """
    text = CARDS.sub("", CERTIFICATES.sub("", world(sandbox)))
    return json.dumps(undeclared(json.loads(text)), indent=1)


def undeclared(value: Any) -> Any:
    """Without custom resource definitions: a supervisor has declared more since. Objects of clusters are
    sorted: a namespace that has come since is not the last one everywhere.
    """
    if isinstance(value, dict):
        return {name: undeclared(each) for name, each in value.items() if name not in NEW}
    if isinstance(value, list):
        known = [
            undeclared(each)
            for each in value
            if not isinstance(each, dict) or each.get("kind") not in DECLARED
        ]
        objects = all(isinstance(each, dict) and "metadata" in each for each in known)
        return sorted(known, key=json.dumps) if objects else known
    return value
