"""Checks for what would stop an apply of Tanzu clusters: an API that their supervisor does not serve, and
logins to existing clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bfinfra.kinds.supervisor.base.guest_checks import guest_checks
from bfinfra.kinds.supervisor.base.namespaces import at_supervisor, catalog
from bfinfra.kinds.supervisor.tanzu_cluster.forms import FORMS
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.finding import Finding, Health, bad, good
from bfinfra.model.refs import Key

if TYPE_CHECKING:
    from bfinfra.kinds.checks import CheckContext


def tanzu(context: CheckContext) -> Iterator[Finding]:
    """A finding per supervisor: whether it serves the API in which the site writes its Tanzu clusters."""
    for key, spec in context.of("tanzu_cluster").items():
        home = context.site.resources[Key("supervisor_namespace", spec.namespace)]
        supervisor = context.once(catalog).supervisors.get(home.cluster)
        if supervisor is None or not supervisor.running:
            what, why = f"whether {spec.api} is served", f"no supervisor runs on {home.cluster}"
            yield Finding(str(key), Health.SKIPPED, what, why)
        elif at_supervisor(context, Endpoint(server=supervisor.endpoint), str(key)).serves(
            spec.api, FORMS[spec.api].kind
        ):
            yield good(key, f"the supervisor serves {spec.api}")
        else:
            yield bad(
                key,
                f"the supervisor serves no {spec.api}",
                next="write an api that it serves: kubectl api-versions shows them",
            )


CHECKS = {**guest_checks("tanzu_cluster"), "clusters.tanzu": tanzu}
