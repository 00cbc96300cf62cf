"""How the tests of printed rights change it."""

from __future__ import annotations

from rights.life import Life
from rights.others import take_labels_off

OBJECTS = (
    "/api/v1/serviceaccounts",
    "/api/v1/configmaps",
    "/apis/apps/v1/deployments",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/nvidia.com/v1/clusterpolicies",
)

LIFE = Life(drifts=(lambda sandbox: take_labels_off(sandbox, *OBJECTS),), reads_inside=True, hidden=OBJECTS)

GROUP = "/apis/nvidia.com/v1alpha1"
BY_CLAIMS = (*OBJECTS[:-1], f"{GROUP}/gpuclusters", f"{GROUP}/nvidiadrivers")
VARIANTS = {
    "gpu_operator by claims": Life(
        example=(("/gpu-operator]", "/gpu-operator-dra]"), ("metrics: true", "metrics: true, allocate: dra")),
        drifts=(lambda sandbox: take_labels_off(sandbox, *BY_CLAIMS),),
        reads_inside=True,
        hidden=BY_CLAIMS,
    )
}
