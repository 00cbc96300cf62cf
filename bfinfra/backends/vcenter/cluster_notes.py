"""Notes on clusters in custom attributes: the owner of something on the cluster that can't have a mark
itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyVmomi import vim

from bfinfra.backends.vcenter import attributes, properties, refs
from bfinfra.backends.vcenter.esxi_settings import Noted
from bfinfra.backends.vcenter.properties import Row
from bfinfra.backends.vcenter.session import SoapSession

NOTED: Mapping[type[Any], Sequence[str]] = {vim.ClusterComputeResource: ["name", "customValue"]}


class ClusterNotes:
    """Notes of one name on the clusters of one vCenter. Raises RemoteError."""

    def __init__(self, session: SoapSession) -> None:
        self._session = session
        self.defined: attributes.Defined | None = None
        """Reads the names of custom attributes; None: from vCenter each time."""
        self._notes = attributes.LastOne()

    def read(self, attribute: str, *, everyone: bool) -> Mapping[str, tuple[str, str]]:
        """Clusters by name: id and note, "" for none. Unless `everyone`: {} if no such attribute exists."""

        def read(content: Any) -> Mapping[str, tuple[str, str]]:
            keys = attributes.keys(content, attribute, self.defined)
            rows = (
                properties.below(content, content.rootFolder, NOTED, properties.whole)
                if keys or everyone
                else []
            )
            return {row.name: (row.moid, _note(row, keys)) for row in rows}

        return self._session.read(read)

    def noted(self, prefix: str, *, everyone: bool) -> dict[str, Noted]:
        """Clusters by name, with their attributes that have this prefix. Unless `everyone`: {} if no such
        attribute exists.
        """
        return self._session.read(
            lambda content: attributes.noted(
                content, vim.ClusterComputeResource, prefix, everyone=everyone, ask=self.defined
            )
        )

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
