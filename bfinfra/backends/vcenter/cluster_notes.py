"""Notes on clusters, kept in custom attributes: whose something on the cluster is that has no place for a mark itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from pyVmomi import vim

from bfinfra.backends.vcenter import properties, refs
from bfinfra.backends.vcenter.properties import Row
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.model.errors import Exists

NOTED: Mapping[type[Any], Sequence[str]] = {vim.ClusterComputeResource: ["name", "customValue"]}


class ClusterNotes:
    """Notes of one name on the clusters of one vCenter. Raises RemoteError."""

    def __init__(self, session: SoapSession) -> None:
        self._session = session

    def read(self, attribute: str, *, everyone: bool) -> Mapping[str, tuple[str, str]]:
        """Clusters by name: id and note, "" for none. Unless `everyone`: none where there is no such attribute at all."""
        def read(content: Any) -> Mapping[str, tuple[str, str]]:
            keys = _keys(content, attribute)
            rows = properties.below(content, content.rootFolder, NOTED, properties.whole) if keys or everyone else []
            return {unquote(row["name"] or ""): (row.moid, _note(row, keys)) for row in rows}

        return self._session.read(read)

    def set(self, moid: str, attribute: str, text: str) -> None:
        """Write a note; the attribute is defined for clusters where it isn't yet."""
        def write(content: Any) -> None:
            manager = content.customFieldsManager
            keys = _keys(content, attribute)
            if not keys:
                try:
                    keys = [int(manager.AddCustomFieldDef(attribute, vim.ClusterComputeResource, None, None).key)]
                except Exists:  # another run defined it in between
                    keys = _keys(content, attribute)
            manager.SetField(refs.refer(content, vim.ClusterComputeResource, moid), keys[0], text)

        self._session.write(write)

    def drop(self, moid: str, attribute: str) -> None:
        """Empty a note; the last one takes the attribute's definition along."""
        elsewhere = any(text and other != moid for other, text in self.read(attribute, everyone=False).values())

        def write(content: Any) -> None:
            for key in _keys(content, attribute):
                if elsewhere:
                    content.customFieldsManager.SetField(refs.refer(content, vim.ClusterComputeResource, moid), key, "")
                else:
                    content.customFieldsManager.RemoveCustomFieldDef(key)

        self._session.write(write)


def _keys(content: Any, attribute: str) -> list[int]:
    if content.customFieldsManager is None:
        return []
    defined = properties.one(content, content.customFieldsManager, ["field"])["field"] or ()
    return [int(each.key) for each in defined if each.name == attribute]


def _note(row: Row, keys: Sequence[int]) -> str:
    return next((str(each.value) for each in row["customValue"] or () if each.key in keys and each.value), "")
