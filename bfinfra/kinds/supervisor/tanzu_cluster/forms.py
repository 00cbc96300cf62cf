"""The form of a cluster in each of the four APIs: the object to send, the fields of a live object, its
status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bfinfra.kinds.supervisor.tanzu_cluster import v1alpha1, v1alpha2, v1beta1
from bfinfra.kinds.supervisor.tanzu_cluster.manifest import Fields, Object
from bfinfra.kinds.supervisor.tanzu_cluster.spec import V1ALPHA1, V1BETA1, Spec
from bfinfra.model.records import dataclass

TANZU, CLUSTER_API = "TanzuKubernetesCluster", "Cluster"


@dataclass(frozen=True)
class Form:
    """One API. `body(spec, version, authorities)`: the object's spec. `view(body, pool)`: its fields as a
    site writes them; `pool`: the name of the workers for an API with one pool. `version(body)`: in full if
    the object has it. `phase` and `address` read the whole object.
    """

    kind: str
    body: Callable[[Spec, str, Mapping[str, str]], Object]
    view: Callable[[Fields, str], Object]
    version: Callable[[Fields], str]
    phase: Callable[[Fields], str]
    address: Callable[[Fields], Fields]
    short: bool = False
    """Whether the version may be a prefix; else it must be a release's name."""


_SECOND = Form(TANZU, v1alpha2.body, v1alpha2.view, v1alpha2.version, v1alpha1.phase, v1alpha2.address)
FORMS: Mapping[str, Form] = {
    V1ALPHA1: Form(
        TANZU, v1alpha1.body, v1alpha1.view, v1alpha1.version, v1alpha1.phase, v1alpha1.address, short=True
    ),
    "run.tanzu.vmware.com/v1alpha2": _SECOND,
    "run.tanzu.vmware.com/v1alpha3": _SECOND,
    V1BETA1: Form(CLUSTER_API, v1beta1.body, v1beta1.view, v1beta1.version, v1beta1.phase, v1beta1.address),
}


def manifest(
    name: str, namespace: str, spec: Spec, authorities: Mapping[str, str], version: str = ""
) -> Object:
    """The object to send. `authorities`: name → PEM; `version`: what to send instead of the
    spec's version.
    """
    form = FORMS[spec.api]
    return {
        "apiVersion": spec.api,
        "kind": form.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": form.body(spec, version or spec.version, authorities),
    }
