"""Pod Security of workload clusters: from 1.26 on, their releases refuse pods that are not restricted in
namespaces without a label, unless the cluster's variables say otherwise; 1.25 warns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bfinfra.sandbox.kubernetes.admission import AdmittingCluster
from bfinfra.sandbox.kubernetes.objects import dig
from bfinfra.sandbox.kubernetes.pod_security import MODES

WARNED, ENFORCED = 25, 26
"""Minor versions since which the default warns, and refuses."""
SYSTEM = frozenset({"kube-system", "tkg-system", "vmware-system-cloud-provider", "vmware-system-csi"})


def secure(cluster: AdmittingCluster, variables: Mapping[str, Any]) -> None:
    """Set a cluster's defaults. `variables`: those of its class."""
    minor = cluster.registry.minor
    modes = MODES if minor >= ENFORCED else MODES[1:] if minor >= WARNED else ()
    given = dig(variables, "kubernetes", "security", "podSecurityStandard", default={})
    own = given or variables.get("podSecurityStandard") or {}
    found = dict.fromkeys(modes, "restricted") | {mode: own[mode] for mode in MODES if own.get(mode)}
    cluster.pod_security.defaults = {} if own.get("deactivated") else found
    cluster.pod_security.exempt = SYSTEM | {*dig(own, "exemptions", "namespaces", default=())}
