"""What differs of the plug-in's objects, told without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from bfinfra.kinds.cluster.bitfusion_device_plugin.manifests import Rendered
from bfinfra.kinds.cluster.bitfusion_device_plugin.state import State, Thing, place_of
from bfinfra.kinds.cluster.bitfusion_device_plugin.writes import changes_of
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark

WANTED = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "webhook", "namespace": "bwki", "labels": {"app": "bwki"}},
    "spec": {"ports": [{"port": 443}]},
}


def fields(metadata: Any = WANTED["metadata"], **live: Any) -> set[str]:
    thing = Thing({**WANTED, "metadata": metadata, **live}, Mark("s", "a/b"), "d", going=False, uid="u")
    place = place_of(WANTED)
    state = State(cluster="k", home=Endpoint(), things={place: thing})
    return {each.field.removeprefix(f"{place}.") for each in changes_of(Rendered(WANTED, "d"), state)}


@pytest.mark.parametrize(
    ("labels", "differs"),
    [
        ({"app": "another"}, {"labels.app"}),
        ({}, {"labels.app"}),
        (None, {"labels"}),
        ({"app": "bwki", "team": "a"}, set()),
    ],
)
def test_a_label_that_somebody_changed_or_removed_is_drift_and_one_more_is_none(
    labels: Any, differs: set[str]
) -> None:
    assert fields({"name": "webhook", "namespace": "bwki", "labels": labels}) == differs


def test_a_field_that_somebody_changed_is_drift_and_one_more_is_none() -> None:
    assert fields(spec={"ports": [{"port": 8443}]}) == {"spec.ports.0.port"}
    assert fields(spec={"ports": [{"port": 443, "protocol": "TCP"}], "clusterIP": "10.0.0.1"}) == set()
