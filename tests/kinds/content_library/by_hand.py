"""What somebody sets by hand on a library of a site that says only that it follows another one."""

from __future__ import annotations

from typing import Any

from kinds.by_hand import ByHand

from bfinfra.backends.vcenter import VCenter

PATH = "/api/content/subscribed-library"


def _found(vcenter: VCenter) -> Any:
    all_ = (vcenter.rest.get(f"{PATH}/{each}") for each in vcenter.rest.get(PATH))
    return next(each for each in all_ if each["name"] == "ours")


def _hand(vcenter: VCenter) -> None:
    found = _found(vcenter)
    follows = {
        "subscription_url": "https://mirror.small.test/lib.json",
        "authentication_method": "BASIC",
        "user_name": "reader",
        "password": "by hand",
        "automatic_sync_enabled": False,
        "ssl_thumbprint": ":".join(["AB"] * 20),
    }
    body = {"description": f"by hand\n{found['description']}", "subscription_info": follows}
    vcenter.rest.patch(f"{PATH}/{found['id']}", body)


BY_HAND = (
    ByHand(
        said={"datastore": "shared", "subscription": {}},
        hand=_hand,
        unmark=lambda vcenter: vcenter.rest.patch(
            f"{PATH}/{_found(vcenter)['id']}", {"description": "by hand"}
        ),
        changed={"datastore": "shared", "subscription": {"on_demand": False}},
        shown=frozenset({"subscription.on_demand"}),
        moved=r"/rest/libraries/ours/subscription_info/on_demand",
    ),
)
