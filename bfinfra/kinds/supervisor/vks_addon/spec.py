"""The desired state of an add-on of a cluster."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue, StringConstraints

from bfinfra.model import resource
from bfinfra.model.names import DNS_LABEL, DNS_LABEL_RULE
from bfinfra.model.refs import Ref

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", max_length=253)]


class Spec(resource.Spec):
    """The desired state of one add-on of one cluster."""

    name_pattern = DNS_LABEL
    name_rule = DNS_LABEL_RULE

    cluster: Annotated[str, Ref("vks_cluster")]
    """The cluster."""
    addon: Name
    """The add-on, as `kubectl get addons -n vmware-system-vks-public` shows it: cluster-autoscaler."""
    release: Name | None = None
    """A release of it, as `kubectl get addonreleases` shows it; else the newest that fits the cluster."""
    values: dict[str, JsonValue] = Field(default_factory=dict)
    """Its settings; what isn't written has the add-on's own values. No secrets: they would be in the
    object.
    """
    keep: bool = False
    """Leave what it brought into the cluster when it is taken out."""
