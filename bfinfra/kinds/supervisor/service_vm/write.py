"""Runs the steps of a machine, each in one call."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bfinfra.backends.kubernetes.marks import Marking
from bfinfra.kinds.supervisor.service_vm import manifest as form
from bfinfra.kinds.supervisor.service_vm import steps
from bfinfra.model.secret import Secret

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient

UNOWNED: Mapping[str, Any] = {"metadata": {"ownerReferences": []}}


def write(client: ClusterClient, step: steps.OfVm) -> None:
    """Run a step, in one call. Raises RemoteError."""
    space = step.namespace
    match step:
        case steps.Create(manifest=Mapping() as manifest):
            client.create(manifest)
        case steps.Clear(name=name, api=api, left=left):
            properties = {"vAppConfig": {"properties": [dict(each) for each in left]}}
            client.patch(api, form.VM, name, {"spec": {"bootstrap": properties}}, space)
        case steps.WriteSecret(manifest=Marking() as manifest):
            client.apply(manifest)
        case steps.WriteSecret(manifest=Mapping() as manifest, source=source):
            client.apply({**manifest, "data": content(source)}, force=True)
        case steps.KeepDisk(name=name, disk=disk):
            client.patch("v1", form.CLAIM, form.claim_name(name, disk), UNOWNED, space)
        case steps.ReleaseDisk(manifest=Mapping() as manifest):
            owners = {"metadata": {"ownerReferences": manifest["metadata"]["ownerReferences"]}}
            client.patch("v1", form.CLAIM, manifest["metadata"]["name"], owners, space)
        case (
            steps.Update(manifest=Mapping() as manifest)
            | steps.MakeDisk(manifest=Mapping() as manifest)
            | steps.Expose(manifest=Mapping() as manifest)
        ):
            # The plan showed each field that another writer changed, and applying the plan confirms the
            # change.
            client.apply(manifest, force=True)
        case _:
            _delete(client, step)


def _delete(client: ClusterClient, step: steps.OfVm) -> None:
    name, space = step.name, step.namespace
    match step:
        case steps.DropSecret():
            client.delete("v1", "Secret", form.secret_name(name), space)
        case steps.DropDisk(disk=disk):
            client.delete("v1", form.CLAIM, form.claim_name(name, disk), space)
        case steps.Hide(api=api):
            client.delete(api, form.SERVICE, name, space)
        case steps.Delete(api=api):
            client.delete(api, form.VM, name, space)
        case _:
            raise AssertionError(step)


def content(source: Mapping[str, Secret]) -> dict[str, str]:
    """The content of a Secret, as it is sent. Raises SecretMissing."""
    return {key: base64.b64encode(value.reveal().encode()).decode() for key, value in source.items()}
