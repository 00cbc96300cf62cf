"""Machines of the VM Service on a kube-apiserver that serves vm-operator's definitions: every object that bfinfra
writes is accepted in each version, with unknown fields forbidden.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from peers.found import Peers
from recorded.vm_service import IN, PLURALS, definition, objects

ONCE = "virtualmachines"
STRICT = ("create", "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-")


@pytest.fixture(params=["v1alpha3", "v1alpha6"])
def served(request: pytest.FixtureRequest, peers: Peers, alone: None) -> Iterator[tuple[Peers, str]]:
    """One release's definitions, and where its versions are had from."""
    found = [definition(plural, request.param) for plural in PLURALS]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": found})
    peers.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=given)
    try:
        for each in found:
            peers.established(each["metadata"]["name"])
        yield peers, IN[request.param]
    finally:
        peers.kubectl("delete", "crd", *(each["metadata"]["name"] for each in found))


def test_what_is_written_is_accepted_in_each_version(served: tuple[Peers, str]) -> None:
    peers, release = served
    versions = [version for version, of in IN.items() if of == release]
    for version in versions:
        for name, obj in objects(version):
            body = {**obj, "metadata": {**obj["metadata"], "namespace": "default"}}
            answer = peers.kubectl(*STRICT, given=json.dumps(body))
            assert "dl-01" in answer, (version, name)


def test_an_unknown_field_is_refused(served: tuple[Peers, str]) -> None:
    peers, release = served
    version = next(version for version, of in IN.items() if of == release)
    _, obj = next(objects(version))
    body = {**obj, "metadata": {**obj["metadata"], "namespace": "default"}}
    body["spec"] = {**body["spec"], "colour": "red"}
    with pytest.raises(AssertionError, match="colour"):
        peers.kubectl(*STRICT, given=json.dumps(body))
