"""The live state of a namespace, and the facts that decisions need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from bfinfra.backends.vcenter.directory import Found
from bfinfra.backends.vcenter.namespaces import Catalog, Namespace, Settings
from bfinfra.backends.words import safe
from bfinfra.kinds.supervisor.supervisor_namespace.spec import Cluster, Policy
from bfinfra.model import resource
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The namespace as vCenter reports it. `endpoint` is set once the namespace runs."""

    status: str
    messages: tuple[str, ...] = ()
    cluster: Cluster
    settings: Settings
    vm_classes: tuple[Annotated[str, Ref("vm_class", optional=True)], ...] = ()
    content_libraries: tuple[Annotated[str, Ref("content_library", optional=True)], ...] = ()
    policies: tuple[Policy, ...] = ()
    creator: str = ""
    endpoint: Endpoint | None = None


@dataclass(frozen=True, slots=True)
class SupervisorNamespaceFacts:
    """The names that namespaces may use. `subjects`: account, in lower case, → what vCenter has for this
    name, or why that is unknown; only for accounts that get access and have none yet.
    """

    catalog: Catalog
    subjects: Mapping[str, Found | str] = field(default_factory=dict)
    zones: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of the supervisors on clusters whose namespaces want zones, by the cluster's name."""


def state_of(found: Namespace) -> State:
    """The state, from what vCenter reports."""
    running = found.status == "RUNNING" and found.endpoint
    return State(
        mark=Mark.decode(found.settings.description),
        status=found.status,
        messages=tuple(safe(each) for each in found.messages if each),
        going=found.status == "REMOVING",
        cluster=found.cluster,
        settings=found.settings,
        vm_classes=found.settings.vm_classes,
        content_libraries=found.settings.libraries,
        policies=tuple(found.settings.storage),
        creator=found.creator,
        endpoint=Endpoint(server=found.endpoint, namespace=found.name) if running else None,
    )
