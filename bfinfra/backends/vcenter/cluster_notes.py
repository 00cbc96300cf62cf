"""Notes on clusters in custom attributes: the owner of something on the cluster that can't have a mark
itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pyVmomi import vim

from bfinfra.backends.vcenter import attributes, properties, refs
from bfinfra.backends.vcenter.esxi_settings import Noted
from bfinfra.backends.vcenter.inventory import Inventories
from bfinfra.backends.vcenter.places import called, lookup, only
from bfinfra.backends.vcenter.properties import Row
from bfinfra.backends.vcenter.session import SoapSession

T = TypeVar("T")
NOTED: Mapping[type[Any], Sequence[str]] = {vim.ClusterComputeResource: ["name", "customValue"]}


class ClusterNotes:
    """Notes of one name on the clusters of one vCenter. Raises RemoteError."""

    def __init__(self, session: SoapSession, inventories: Inventories) -> None:
        self._session, self._inventories = session, inventories
        self.defined: attributes.Defined | None = None
        """Reads the names of custom attributes; None: from vCenter each time."""
        self._notes = attributes.LastOne()

    def read(
        self, attribute: str, *, everyone: bool, texts: Iterable[str] = ()
    ) -> Mapping[str, tuple[str, str]]:
        """Clusters by what the site calls them: id and note, "" for none. Unless `everyone`: {} if no such
        attribute exists. `texts`: the names and paths that the site uses.
        """

        def read(content: vim.ServiceInstanceContent) -> Sequence[tuple[str, str, tuple[str, str]]]:
            keys = attributes.keys(content, attribute, self.defined)
            rows = (
                properties.below(content, content.rootFolder, NOTED, properties.whole)
                if keys or everyone
                else []
            )
            return [(row.name, row.moid, (row.moid, _note(row, keys))) for row in rows]

        return self._called(self._session.read(read), texts)

    def noted(self, prefix: str, *, everyone: bool, texts: Iterable[str] = ()) -> Mapping[str, Noted]:
        """Clusters by what the site calls them, with their attributes that have this prefix. Unless
        `everyone`: {} if no such attribute exists. `texts`: the names and paths that the site uses.
        """
        found = self._session.read(
            lambda content: attributes.noted(
                content, vim.ClusterComputeResource, prefix, everyone=everyone, ask=self.defined
            )
        )
        return self._called([(name, each.moid, each) for name, each in found], texts)

    def _called(self, found: Sequence[tuple[str, str, T]], texts: Iterable[str]) -> Mapping[str, T]:
        """By the text of the site that means a cluster; others by name, or by path where several have it.
        Paths are read where a name is not enough.
        """
        wanted = [*texts]
        here = self._inventories.clusters({moid: name for name, moid, _ in found}, wanted)
        names = {**called(here)}
        names |= {it.moid: text for text in reversed(wanted) if (it := only(lookup(here, text)))}
        return {names.get(moid) or f"{name} ({moid})": each for name, moid, each in found}

    def set(self, moid: str, attribute: str, text: str) -> None:
        """Write a note; the attribute is defined for clusters if it isn't yet."""
        self._session.write(
            lambda content: attributes.write(content, _cluster(content, moid), attribute, text)
        )

    def drop(self, moid: str, attribute: str) -> None:
        """Empty a note; the last one removes the attribute's definition."""
        self._notes.drop(
            moid,
            lambda: self.read(attribute, everyone=False),
            lambda last: self._session.write(
                lambda content: attributes.drop(content, _cluster(content, moid), attribute, last=last)
            ),
        )


def _cluster(content: Any, moid: str) -> Any:
    return refs.refer(content, vim.ClusterComputeResource, moid)


def _note(row: Row, keys: Sequence[int]) -> str:
    return next((str(each.value) for each in row["customValue"] or () if each.key in keys and each.value), "")
