"""What somebody sets by hand on a namespace of a site that limits its CPU alone, or lets a group in alone."""

from __future__ import annotations

from typing import Any

from kinds.by_hand import ByHand

from bfinfra.backends.vcenter import VCenter

PATH = "/api/vcenter/namespaces/instances/ours"
DEVS = {"subject_type": "GROUP", "subject": "devs", "domain": "small.test"}


def _hand(vcenter: VCenter) -> None:
    policies: Any = vcenter.rest.get("/api/vcenter/storage/policies")
    gold = next(each["policy"] for each in policies if each["name"] == "gold")
    library = vcenter.rest.get("/api/content/library")[0]
    vcenter.rest.patch(
        PATH,
        {
            "description": f"by hand\n{vcenter.rest.get(PATH)['description']}",
            "resource_spec": {"memory_limit": 4096, "storage_request_limit": 10240, "pod_count": 40},
            "access_list": [{**DEVS, "role": "OWNER", "identity_provider": "idp-1"}],
            "storage_specs": [{"policy": gold, "limit": 1024}],
            "vm_service_spec": {"vm_classes": ["guaranteed-small"], "content_libraries": [library]},
        },
    )


def _unmark(vcenter: VCenter) -> None:
    vcenter.rest.patch(PATH, {"description": "by hand"})


LIMITED = {"cluster": "compute", "limits": {"cpu": "16GHz"}}
GRANTED = {"cluster": "compute", "access": [{"group": "devs@small.test", "role": "owner"}]}
BY_HAND = (
    ByHand(
        said=LIMITED,
        hand=_hand,
        unmark=_unmark,
        changed={**LIMITED, "limits": {"cpu": "20GHz"}},
        shown=frozenset({"limits.cpu"}),
        moved=r"/rest/namespaces/ours/resource_spec/cpu_limit|.*/hard/limits\.cpu",
    ),
    ByHand(
        said=GRANTED,
        hand=_hand,
        unmark=_unmark,
        changed={**GRANTED, "access": [{"group": "devs@small.test", "role": "view"}]},
        shown=frozenset({"access"}),
        moved=r"/rest/namespaces/ours/access_list/0/role|/supervisors/.*/rolebindings\.rbac\.authorization\.k8s\.io/\d+/roleRef/name",
    ),
)
