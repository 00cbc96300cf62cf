"""The places of a device plug-in's objects."""

from __future__ import annotations

from collections.abc import Mapping

from bfinfra.kinds.cluster.bitfusion_device_plugin.manifests import ADMISSION, ASKING, RBAC, Values, render
from bfinfra.kinds.cluster.bitfusion_device_plugin.spec import Spec
from bfinfra.kinds.cluster.bitfusion_device_plugin.state import (
    AUTHORITY,
    CERTIFICATE,
    Place,
    place_of,
    record_place,
)
from bfinfra.kinds.cluster_locator import real_name
from bfinfra.model.context import ResolvedRef
from bfinfra.model.refs import Key

KINDS = frozenset(
    {
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("v1", "ServiceAccount"),
        ("v1", "Service"),
        ("v1", "ResourceQuota"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "Deployment"),
        *((f"{RBAC}/v1", each) for each in ("ClusterRole", "ClusterRoleBinding")),
        *((ADMISSION, each) for each in ASKING),
    }
)
"""The types of its objects. A manipulated record can't make bfinfra touch others."""


def planned(name: str, spec: Spec, needs: Mapping[Key, ResolvedRef]) -> tuple[Place, ...]:
    """The places of its record, certificates and objects, the record first."""

    def real(written: str) -> str:
        return real_name(written, spec.cluster, needs.get(Key("namespace", written)))

    spaces = {each: real(each) for each in (*spec.namespaces, *(quota.namespace for quota in spec.quotas))}
    values = Values(real(spec.namespace), real(spec.plugin_namespace), spaces)
    secrets = (Place("v1", "Secret", values.namespace, each) for each in (AUTHORITY, CERTIFICATE))
    return (
        record_place(values.namespace, name),
        *secrets,
        *(place_of(each.manifest) for each in render(spec, values)),
    )
