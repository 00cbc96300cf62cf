"""How the tests of printed rights change it."""

from __future__ import annotations

from rights.life import Life
from rights.others import take_labels_off

RBAC = "/apis/rbac.authorization.k8s.io/v1"
OBJECTS = (
    "/api/v1/serviceaccounts",
    "/api/v1/configmaps",
    "/apis/apps/v1/deployments",
    f"{RBAC}/clusterroles",
    f"{RBAC}/clusterrolebindings",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/sched.example.com/v1/queues",
)

LIFE = Life(drifts=(lambda sandbox: take_labels_off(sandbox, *OBJECTS),), reads_inside=True, hidden=OBJECTS)
