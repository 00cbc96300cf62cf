"""Content libraries: local ones, and those subscribed to another one. Source: com.vmware.content
(vmware-vcenter 9.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bfinfra.backends.words import safe
from bfinfra.model.errors import Malformed, Missing
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.rest import Rest

LIBRARIES = "/api/content/library"
LOCAL = "/api/content/local-library"
SUBSCRIBED = "/api/content/subscribed-library"
ITEMS = "/api/content/library/item"
DATASTORES = "/api/vcenter/datastore"
Json = dict[str, Any]
AT_ONCE = 8  # details read in parallel: the API has no bulk form
OURS = "bfinfra keeps this appliance here, under its digest"
"""The description of each item that bfinfra stored."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """The publisher of a library. `thumbprint`: SHA-1 of its certificate, "" for trust by the store;
    `on_demand`: files are copied when they are used.
    """

    url: str
    on_demand: bool = True
    automatic_sync: bool = True
    thumbprint: str = ""


@dataclass(frozen=True, slots=True)
class Library:
    """A library. `datastore`: its id; to make one, its name will do, too; `synced`: whether it ever was."""

    name: str
    datastore: str
    description: str = ""
    subscription: Subscription | None = None
    id: str = ""
    synced: bool = True


class ContentLibraries:
    """The libraries of one vCenter. Raises RemoteError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def list(self) -> Sequence[Library]:
        """All libraries, one request each. Those deleted meanwhile are left out; () if the API doesn't
        exist.
        """
        try:
            ids = self._list(LIBRARIES)
        except Missing:
            return []
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return [library for library in pool.map(self._one, ids) if library is not None]

    def datastores(self) -> Mapping[str, str]:
        """Datastores: id → name."""
        try:
            return {str(each["datastore"]): str(each["name"]) for each in self._rest.get(DATASTORES)}
        except (KeyError, TypeError):
            raise Malformed(
                "the datastores can't be read", server=self._rest.server, why="no list of ids and names"
            ) from None

    def items(self, library: str) -> tuple[str, ...]:
        """The items in a library, as `name (description)`, in order."""
        ids = self._list(ITEMS, {"library_id": library})
        found = (self._rest.get(f"{ITEMS}/{quote(identity)}") for identity in ids)
        return tuple(sorted(safe(f"{each.get('name')} ({each.get('description')})") for each in found))

    def create(self, wanted: Library) -> None:
        """Make a library. Raises Missing if there is no such datastore, or several have the name."""
        known = self.datastores()
        stores = [each for each in known if each == wanted.datastore] or [
            each for each, name in known.items() if name == wanted.datastore
        ]
        if len(stores) != 1:
            raise Missing(
                f"there is no datastore {wanted.datastore}, or there are several",
                server=self._rest.server,
                next="correct the name, or name it by its id",
            )
        body = {
            "name": wanted.name,
            "description": wanted.description,
            "storage_backings": [{"type": "DATASTORE", "datastore_id": stores[0]}],
        }
        if wanted.subscription is None:
            self._rest.post(LOCAL, {**body, "type": "LOCAL"})
        else:
            self._rest.post(
                SUBSCRIBED,
                {**body, "type": "SUBSCRIBED", "subscription_info": _subscription(wanted.subscription)},
            )

    def update(self, identity: str, wanted: Library, writes: Callable[[str], bool]) -> None:
        """Set the description, and those fields of the subscription of which `writes` says so, by their names
        in a site. vCenter keeps the others, such as how the publisher asks for a password.
        """
        body: Json = {"description": wanted.description}
        if wanted.subscription is None:
            self._rest.patch(f"{LOCAL}/{quote(identity)}", body)
            return
        followed = {
            name: value
            for field, (name, value) in _followed(wanted.subscription).items()
            if writes(f"subscription.{field}")
        }
        self._rest.patch(
            f"{SUBSCRIBED}/{quote(identity)}",
            {**body, **({"subscription_info": followed} if followed else {})},
        )

    def delete(self, identity: str, *, subscribed: bool) -> None:
        """Delete a library and its contents. One that is already gone is fine."""
        try:
            if subscribed:
                self._rest.delete(f"{SUBSCRIBED}/{quote(identity)}")
            else:
                self._rest.delete(f"{LOCAL}/{quote(identity)}")
        except Missing:
            return

    def _list(self, path: str, params: Mapping[str, str] | None = None) -> Sequence[str]:
        found = self._rest.get(path, params=params)
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise Malformed(
                "the content libraries can't be read", server=self._rest.server, why="no list of ids"
            )
        return found

    def _one(self, identity: str) -> Library | None:
        try:
            info = self._rest.get(f"{LIBRARIES}/{quote(identity)}")
        except Missing:
            return None
        try:
            followed = info.get("subscription_info")
            follows = (
                Subscription(
                    followed["subscription_url"],
                    bool(followed.get("on_demand")),
                    bool(followed.get("automatic_sync_enabled")),
                    followed.get("ssl_thumbprint") or "",
                )
                if followed
                else None
            )
            store = next((each.get("datastore_id") or "" for each in info.get("storage_backings") or ()), "")
            return Library(
                info["name"],
                store,
                info.get("description") or "",
                follows,
                identity,
                follows is None or bool(info.get("last_sync_time")),
            )
        except (KeyError, TypeError, AttributeError):
            raise Malformed(
                "a content library can't be read", server=self._rest.server, why="no name in it"
            ) from None


def _subscription(wanted: Subscription) -> Json:
    return {"authentication_method": "NONE", **dict(_followed(wanted).values())}


def _followed(wanted: Subscription) -> dict[str, tuple[str, str | bool]]:
    """A site's field of a subscription → the API's name and the value."""
    return {
        "url": ("subscription_url", wanted.url),
        "automatic_sync": ("automatic_sync_enabled", wanted.automatic_sync),
        "on_demand": ("on_demand", wanted.on_demand),
        **({"thumbprint": ("ssl_thumbprint", wanted.thumbprint)} if wanted.thumbprint else {}),
    }
