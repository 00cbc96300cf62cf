"""The steps of a device plug-in. No step holds a certificate's key: keys are created where they
are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from bfinfra.kinds.cluster.bitfusion_device_plugin.state import Place
from bfinfra.model.compare import Unknown
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Right, Use, may
from bfinfra.model.step import Disruption, Step

CONFIGURING = "serviceaccounts configmaps services"
ROLES = "clusterroles.rbac.authorization.k8s.io clusterrolebindings.rbac.authorization.k8s.io"
HOOKS = (
    "validatingwebhookconfigurations.admissionregistration.k8s.io "
    "mutatingwebhookconfigurations.admissionregistration.k8s.io"
)


def each(verbs: str) -> tuple[Right, ...]:
    """The verbs on every object, each in its place."""
    return (
        may(verbs, f"{CONFIGURING} secrets deployments.apps", "webhook"),
        may(verbs, "daemonsets.apps", "plugin"),
        may(verbs, "resourcequotas", "quotas"),
        may(verbs, f"{ROLES} {HOOKS}", "cluster" if verbs == "create" else "named"),
    )


@dataclass(frozen=True, kw_only=True)
class WriteRecord(Step):
    """note in {record} which objects there will be"""

    rights = (may("create patch", "configmaps", "webhook"),)

    record: Place
    places: tuple[Place, ...]
    existing: bool
    home: Endpoint | Unknown
    mark: Mark

    @property
    def exclusive(self) -> bool:
        """True for a creation."""
        return not self.existing


@dataclass(frozen=True, kw_only=True)
class Authorize(Step):
    """make an authority for the webhook's certificate, for {days} days"""

    rights = (may("get create patch", "secrets", "webhook"),)

    namespace: str
    home: Endpoint | Unknown
    existing: tuple[str, ...]
    days: int
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Certify(Step):
    """make a certificate for the webhook, for {days} days"""

    rights = (may("get create patch", "secrets", "webhook"),)

    namespace: str
    home: Endpoint | Unknown
    existing: tuple[str, ...]
    names: tuple[str, ...]
    days: int
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Write(Step):
    """write {what}"""

    rights: ClassVar[tuple[Right, ...]] = (
        may("create patch", CONFIGURING, "webhook"),
        may("create patch", "resourcequotas", "quotas"),
        may("create", ROLES, "cluster"),
        may("patch", ROLES, "named"),
        may("get create", "secrets", "cluster"),
        may("list", "nodes", "cluster"),
    )
    """The last two are what bfinfra grants to the webhook, as nobody can grant what they don't have. Waiting
    for a rollout reads nodes, too.
    """

    what: str
    home: Endpoint | Unknown
    manifests: tuple[Mapping[str, Any], ...]
    existing: tuple[Place, ...]


@dataclass(frozen=True, kw_only=True)
class RollOut(Write):
    """roll out {what}"""

    rights = (
        may("create patch", "daemonsets.apps", "plugin"),
        may("create patch", "deployments.apps", "webhook"),
    )
    waits_ready = True


@dataclass(frozen=True, kw_only=True)
class Replace(Write):
    """replace {what}, which can't be changed in place"""

    rights = (
        may("get delete", f"{CONFIGURING} deployments.apps", "webhook"),
        may("get delete", "daemonsets.apps", "plugin"),
        may("get delete", ROLES, "named"),
    )
    uses = (Use.DESTROY,)
    disruption = Disruption.REPLACE
    why = "an API server doesn't let anybody change these fields"

    uids: tuple[str, ...]
    """What is replaced, in the order of the manifests."""


@dataclass(frozen=True, kw_only=True)
class Ask(Write):
    """let the API server ask the webhook: {what}"""

    rights = (may("create", HOOKS, "cluster"), may("patch", HOOKS, "named"))


@dataclass(frozen=True, kw_only=True)
class Remove(Step):
    """remove {what}"""

    rights = each("get delete")
    uses = (Use.DESTROY,)

    what: str
    home: Endpoint
    places: tuple[Place, ...]


@dataclass(frozen=True, kw_only=True)
class Clear(Remove):
    """remove {what}, to make it elsewhere"""

    disruption = Disruption.REPLACE
    why = "a plug-in can't move to another cluster"
    waits_ready = True


@dataclass(frozen=True, kw_only=True)
class Commit(Step):
    """note in {record} what was applied"""

    rights = (may("patch", "configmaps", "webhook"),)

    record: Place
    places: tuple[Place, ...]
    home: Endpoint | Unknown
    mark: Mark
