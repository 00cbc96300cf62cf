"""Creates the webhook's authority and certificate, in the function that writes them: keys exist only here and
in the cluster.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bfinfra.backends import authority
from bfinfra.backends.kubernetes.marks import marked
from bfinfra.kinds.cluster.bitfusion_device_plugin.manifests import WEBHOOK
from bfinfra.kinds.cluster.bitfusion_device_plugin.state import (
    AUTHORITY,
    CA_KEYS,
    CERTIFICATE,
    OWN_KEYS,
    value_of,
)
from bfinfra.kinds.cluster.bitfusion_device_plugin.steps import Authorize, Certify
from bfinfra.model.errors import Conflict

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient


def make(cluster: ClusterClient, step: Authorize | Certify) -> None:
    """Runs a step."""
    if isinstance(step, Authorize):
        _authorize(cluster, step)
    else:
        _certify(cluster, step)


def _authorize(cluster: ClusterClient, step: Authorize) -> None:
    """Writes a new authority. Earlier ones stay trusted until they expire, as the webhook may still show a
    certificate of theirs.
    """
    before = value_of(cluster.get("v1", "Secret", AUTHORITY, step.namespace), CA_KEYS[0])
    certificate, key = authority.make(f"{WEBHOOK} in {step.namespace}", step.days)
    _write(
        cluster,
        AUTHORITY,
        step,
        dict(zip(CA_KEYS, (certificate + authority.unexpired(before), key), strict=True)),
    )


def _certify(cluster: ClusterClient, step: Certify) -> None:
    """Writes a new certificate, signed with the key in the cluster. Raises Conflict if that key changed
    meanwhile.
    """
    own = cluster.get("v1", "Secret", AUTHORITY, step.namespace)
    try:
        made = authority.issue(value_of(own, CA_KEYS[0]), value_of(own, CA_KEYS[1]), step.names, step.days)
    except ValueError as error:
        raise Conflict("sign the webhook's certificate", why=str(error)) from None
    _write(cluster, CERTIFICATE, step, dict(zip(OWN_KEYS, made, strict=True)))


def _write(cluster: ClusterClient, name: str, step: Authorize | Certify, values: Mapping[str, bytes]) -> None:
    data = {key: base64.b64encode(value).decode() for key, value in values.items()}
    sort = "kubernetes.io/tls" if name == AUTHORITY else "Opaque"
    body = marked(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": sort,
            "metadata": {"name": name, "namespace": step.namespace},
            "data": data,
        },
        step.mark,
    )
    if name in step.existing:
        cluster.apply(body, force=True)
    else:
        cluster.create(body)
