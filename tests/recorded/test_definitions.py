"""What bfinfra writes, by the definitions of those who serve it, with unknown fields forbidden: Tanzu
clusters, Cluster API, MPI jobs.
"""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
import yaml
from kinds.lifecycle import SPECS
from pydantic import ValidationError
from recorded.conftest import Held
from recorded.sources import fetched, stored

from bfinfra.kinds.cluster.mpi_job import manifest as mpi
from bfinfra.kinds.cluster.mpi_job.spec import Spec as MpiSpec
from bfinfra.kinds.supervisor.tanzu_cluster import declared, forms
from bfinfra.kinds.supervisor.tanzu_cluster.spec import Spec as TanzuSpec

BASES = "module/cluster-api-v1.14.2"
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
POOL = {"vm_class": "best-effort-small", "storage_class": "gold"}
VOLUMES = {"volumes": {"containerd": {"mount_path": "/var/lib/containerd", "capacity": "20GiB"}}}
NETWORK = {"pods": ["192.168.0.0/16"], "services": ["10.96.0.0/12"], "service_domain": "cluster.local"}


def schema(definition: dict[str, Any], version: str) -> Any:
    """Of one version, without the fields that it doesn't name; apiextensions v1beta1 has one for all."""
    spec = definition["spec"]
    for each in spec["versions"]:
        if each["name"] == version:
            return closed((each.get("schema") or spec["validation"])["openAPIV3Schema"])
    raise AssertionError(f"no {version} in {[each['name'] for each in spec['versions']]}")


def closed(part: Any) -> Any:
    """The schema with `additionalProperties: false` wherever fields are named and nothing else is declared to be
    kept.
    """
    if isinstance(part, list):
        return [closed(each) for each in part]
    if not isinstance(part, dict):
        return part
    found = {
        key: value if key in ("enum", "default", "required") else closed(value)
        for key, value in part.items()
        if key != "format"
    }
    if part.get("x-kubernetes-int-or-string"):
        return {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    if isinstance(part.get("properties"), dict) and not part.get("x-kubernetes-preserve-unknown-fields"):
        found.setdefault("additionalProperties", False)
    return found


def judge(found: Any, obj: dict[str, Any]) -> list[str]:
    """What is wrong with an object by a schema. A Kubernetes object's metadata and types are the API server's
    own matter.
    """
    body = {**found, "properties": {**found["properties"], "metadata": {}, "apiVersion": {}, "kind": {}}}
    errors = jsonschema.Draft7Validator(body).iter_errors(obj)
    return [
        f"{obj['apiVersion']} {'.'.join(map(str, each.absolute_path))}: {each.message[:200]}"
        for each in errors
    ]


def examples(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every resource of a kind in the sites and examples of specs/: where it stands, and as it is written."""
    for path in sorted(
        itertools.chain(
            SPECS.glob("*.yaml"), (SPECS / "kinds").glob("*.yaml"), (SPECS / "peers").glob("*.yaml")
        )
    ):
        for name, given in ((yaml.safe_load(path.read_text()) or {}).get(kind) or {}).items():
            yield f"{path.name} {name}", given


class Shown:
    """A supervisor that shows a definition, in the form of apiextensions v1."""

    def __init__(self, definition: dict[str, Any]) -> None:
        spec = definition["spec"]
        versions = [
            {"name": each["name"], "schema": each.get("schema") or spec["validation"]}
            for each in spec["versions"]
        ]
        self._definition = {"spec": {"versions": versions}}

    def get(self, *_: str) -> dict[str, Any]:
        return self._definition


def clusters(api: str, shown: Any = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Of the examples and of all that can be written, as an object of this API; without what is refused by
    the definition that is `shown`.
    """
    authorities = {"harbor": PEM}
    several = not api.endswith("v1alpha1")
    pools = {"a": {"count": 1, **POOL}, **({"b": {"count": 2, **POOL, **VOLUMES}} if several else {})}
    full = {
        "version": "v1.20.2",
        "control_plane": {"count": 3, **POOL},
        "workers": pools,
        "network": NETWORK,
        "storage_classes": ["gold"],
        "default_storage_class": "gold",
    }
    for name, given in (*examples("tanzu_cluster"), ("everything", {"namespace": "team-a", **full})):
        try:
            spec = TanzuSpec.model_validate(
                {**{key: value for key, value in given.items() if key != "trust"}, "api": api}
            )
        except ValidationError:
            continue  # bfinfra doesn't write it as this API: its CNI, or a second pool
        asked = spec.model_copy(update={"trust": {"harbor": None}}) if "trust" in given else spec
        if shown is not None and declared.undeclared(shown, api, declared.unproved(asked, None)):
            continue
        trusted = authorities if "trust" in given else {}
        yield name, forms.manifest(name.split()[-1], "team-a", spec, trusted, "v1.20.2+vmware.1")


def count(source: str, found: Any, made: Iterator[tuple[str, dict[str, Any]]], held: Held) -> None:
    judged = [(name, judge(found, obj)) for name, obj in made]
    held(source, [f"{name}: {wrong[0]}" for name, wrong in judged if wrong], len(judged))


@pytest.mark.parametrize("version", ["v1beta1"])
def test_clusters_of_cluster_api(version: str, held: Held) -> None:
    bases = fetched(BASES) / "core/config/crd/bases"
    definition = yaml.safe_load((bases / "cluster.x-k8s.io_clusters.yaml").read_text())
    count(
        f"cluster-api 1.14.2: Cluster {version}",
        schema(definition, version),
        clusters(f"cluster.x-k8s.io/{version}"),
        held,
    )


def test_a_written_cluster_comes_back_as_its_later_version_has_it(held: Held) -> None:
    """v1beta2 stores what is written as v1beta1: the fields that bfinfra writes, and reads, are there by the
    same names, but the class.
    """
    definition = yaml.safe_load(
        (fetched(BASES) / "core/config/crd/bases/cluster.x-k8s.io_clusters.yaml").read_text()
    )
    later, wrong, number = schema(definition, "v1beta2"), [], 0
    for name, obj in clusters("cluster.x-k8s.io/v1beta1"):
        topology = dict(obj["spec"]["topology"])
        topology["classRef"] = {"name": topology.pop("class")}
        problems = judge(later, {**obj, "spec": {**obj["spec"], "topology": topology}})
        number, wrong = number + 1, [*wrong, *(f"{name}: {each}" for each in problems[:1])]
    held("cluster-api 1.14.2: Cluster v1beta2", wrong, number)


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
def test_tanzu_clusters(version: str, held: Held) -> None:
    definition = yaml.safe_load(stored(f"crds/tanzukubernetesclusters-{version}.yaml").read_text())
    shown = clusters(f"run.tanzu.vmware.com/{version}", Shown(definition))
    count(f"tanzu-framework: TanzuKubernetesCluster {version}", schema(definition, version), shown, held)


def test_what_the_definition_of_2021_would_drop_is_what_is_refused() -> None:
    api = "run.tanzu.vmware.com/v1alpha1"
    definition = yaml.safe_load(stored("crds/tanzukubernetesclusters-v1alpha1.yaml").read_text())
    refused = {name for name, _ in clusters(api)} - {name for name, _ in clusters(api, Shown(definition))}
    wrong = {name for name, obj in clusters(api) if judge(schema(definition, "v1alpha1"), obj)}
    assert refused == wrong != set()


def test_mpi_jobs(held: Held) -> None:
    definition = yaml.safe_load(gzip.decompress(stored("crds/mpijobs-v2beta1.yaml.gz").read_bytes()))
    kinds: Callable[[dict[str, Any]], MpiSpec] = MpiSpec.model_validate
    made = (
        (name, mpi.manifest(name.split()[-1], kinds(given), "v2beta1", "default", "pull"))
        for name, given in examples("mpi_job")
    )
    count("mpi-operator: MPIJob v2beta1", schema(definition, "v2beta1"), made, held)


def test_an_unknown_field_is_found() -> None:
    """The judge itself: a field that nobody knows, and one of the wrong type."""
    definition = yaml.safe_load(stored("crds/tanzukubernetesclusters-v1alpha2.yaml").read_text())
    _, obj = next(clusters("run.tanzu.vmware.com/v1alpha2"))
    found = schema(definition, "v1alpha2")
    assert judge(found, obj) == []
    assert judge(found, {**obj, "spec": {**obj["spec"], "colour": "red"}})
    assert judge(
        found, {**obj, "spec": {**obj["spec"], "topology": {**obj["spec"]["topology"], "nodePools": "two"}}}
    )
