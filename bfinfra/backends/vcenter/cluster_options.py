"""Advanced options of clusters' DRS: one bulk read, one write for each option."""

from __future__ import annotations

from collections.abc import Iterable

from pyVmomi import vim

from bfinfra.backends.vcenter import properties, refs
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.backends.vcenter.tasks import Tasks

PATH = "configurationEx.drsConfig.option"


class ClusterOptions:
    """The options of DRS in the clusters of one vCenter. Raises RemoteError."""

    def __init__(self, session: SoapSession, tasks: Tasks) -> None:
        self._session = session
        self._tasks = tasks

    def read(self, moids: Iterable[str]) -> dict[str, dict[str, str]]:
        """Cluster → key → value, without unset options."""
        listed = list(dict.fromkeys(moids))
        return dict(
            self._session.read(
                lambda content: properties.of(
                    content,
                    vim.ClusterComputeResource,
                    listed,
                    [PATH],
                    lambda row: (row.moid, {str(each.key): str(each.value) for each in row[PATH] or ()}),
                )
            )
            if listed
            else ()
        )

    def set(self, moid: str, key: str, value: str) -> None:
        """Set an option and keep the others; "" removes it."""
        options = [vim.option.OptionValue(key=key, value=value)]
        spec = vim.cluster.ConfigSpecEx(drsConfig=vim.cluster.DrsConfigInfo(option=options))
        self._tasks.run(
            lambda content: refs.refer(
                content, vim.ClusterComputeResource, moid
            ).ReconfigureComputeResource_Task(spec, modify=True),
            f"setting {key} of cluster {moid}",
        )
