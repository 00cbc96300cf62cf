"""What the backends and kinds can ask, and what the suite asked: the same. A new request without a contract
test fails here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contract import reach, table
from kinds.lifecycle import EVERYTHING, LONG, QUICK, SPECS, endings, made

import bfinfra
from bfinfra.engine.apply import Options
from bfinfra.sandbox import Running, start, stop

ASKED = reach.asked()
SUITE_ONLY = {
    "CreateFolder",
    "RetrieveServiceContent",
    "GET /api/vcenter/nothing-of-the-kind",
    "PUT /api/vcenter/namespaces/instances/{id}",
    "POST /api/session",
    "DELETE /api/session",
    "POST /nfc/{lease}/{file}",
    "PUT /cls/data/{session}/{file}",
    "POST /rest/com/vmware/cis/tagging/category",
    "POST /rest/com/vmware/cis/tagging/tag",
    "PbmRetrieveServiceContent",
    "POST /api/vcenter/vm-template/library-items",
    "fetchSoftwarePackages",
}
"""What the suite asks to prepare or to spoil something, and what no text in the sources spells out: sessions,
uploads, what pyVmomi calls by another name.
"""


def test_every_soap_method_in_the_sources_is_covered() -> None:
    assert reach.soap_methods() - ASKED == set()


def test_every_path_in_the_sources_is_covered() -> None:
    assert reach.paths() - ASKED == set()


def test_every_verb_of_kubernetes_is_a_call_of_the_suite() -> None:
    covered = {call for each in table.results().values() for call in each["about"]["calls"]}
    assert {f"cluster.{verb}" for verb in reach.kubernetes_verbs()} <= covered


def test_the_suite_asks_vcenter_nothing_that_is_not_in_the_sources() -> None:
    """Then what was covered is no longer reached, and its tests prove nothing."""
    vcenter = {request for request in ASKED if " " not in request or " /" in request}
    assert vcenter - reach.soap_methods() - reach.paths() == SUITE_ONLY


def test_all_that_the_whole_poc_asks_was_asked(poc: Running) -> None:
    assert life(SPECS / "singapore-poc.yaml", poc) - ASKED == set()


@pytest.fixture
def poc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    yield start(SPECS / "worlds/singapore-poc.yaml", tmp_path / "sandbox", pace=0)
    stop(tmp_path / "sandbox")


def life(path: Path, world: Running) -> set[str]:
    """Applied, a kubeconfig for each cluster, destroyed: what was asked, by name. Each kind's is looked at in
    tests/kinds/test_every_kind.py.
    """
    asked: set[str] = set()

    site, context = (
        bfinfra.load(path, sandbox=world),
        bfinfra.RunContext(sandbox=world, middleware=(reach.noting(asked),), retry=QUICK),
    )
    how: dict[str, Any] = {
        "approve": lambda _: EVERYTHING,
        "options": Options(retry=QUICK, deadline=LONG),
        "context": context,
    }
    done = bfinfra.apply(site, **how)
    assert made(done), endings(done)
    for key in site.resources:
        if key.kind.endswith("_cluster") or key.kind == "supervisor_namespace":
            bfinfra.kubeconfig(site, str(key), context=context)
    gone = bfinfra.apply(site, destroy=True, **how)
    assert made(gone), endings(gone)
    return asked
