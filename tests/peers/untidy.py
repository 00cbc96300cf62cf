"""A vcsim with other people's objects beside the site's: a second datacenter in a folder, equal names of all that
a name is given to, names that are hard to write, hosts out of service. Filled by pyVmomi as shipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kinds.untidy import ODD, find, machines, out_of_service, pools, switch
from pyVmomi import vim
from torture.hands import settled

HOME, ABROAD = "/DC0", "/elsewhere/abroad"
CLUSTER = "DC0_C0"
THEIRS = f"{HOME}/host/others/gpu/{CLUSTER}"
"""A cluster with the name of the site's, in a folder of hosts."""
STORE, GROUP = "LocalDS_0", "DC0_DVPG0"
"""What vcsim makes in its datacenter."""
TEMPLATE = "centos-7.6"


def fill(si: Any, disks: Path, names: dict[str, Sequence[str]]) -> None:
    """Makes the twins of these names, by kind. `disks`: a folder for what stands for datastores."""
    _hosts(si, disks)
    places = (
        (f"{HOME}/vm/teamA", f"{HOME}/host/{CLUSTER}", STORE),
        (f"{HOME}/vm/teamB", f"{HOME}/host/{CLUSTER}", STORE),
        (f"{HOME}/vm/others", THEIRS, "theirs"),
        (f"{ABROAD}/vm", f"{ABROAD}/host/{CLUSTER}", STORE),
    )
    for folder in ("teamA", "teamB", "others"):
        find(si, f"{HOME}/vm").CreateFolder(folder)
    odd = find(si, f"{HOME}/vm/teamA").CreateFolder("a/b")
    odd.CreateFolder("teamB")
    for folder, cluster, store in places:
        pool = find(si, f"{cluster}/Resources")
        machines(find(si, folder), names["virtual_machine"], pool, store)
        machines(find(si, folder), (TEMPLATE, *(["alone"] if folder.startswith(ABROAD) else [])), pool, store)
        find(si, f"{folder}/{TEMPLATE}").MarkAsTemplate()
    own = find(si, f"{HOME}/vm").CreateFolder("ours")
    machines(own, (TEMPLATE,), find(si, f"{HOME}/host/{CLUSTER}/Resources"), STORE)
    find(si, f"{HOME}/vm/ours/{TEMPLATE}").MarkAsTemplate()
    within = [f"{each}/{name}" for name in names["virtual_machine"] for each in ("x", "vm")]
    machines(odd, (*ODD, *within, "kept"), find(si, f"{HOME}/host/{CLUSTER}/Resources"), STORE)
    kept = next(each for each in odd.childEntity if each.name == "kept")
    settled(kept.CreateSnapshot_Task("before", "theirs", memory=False, quiesce=False))
    for cluster in (f"{HOME}/host/WCP-compute", THEIRS, f"{ABROAD}/host/{CLUSTER}"):
        pools(si, cluster, names["resource_pool"])
    find(si, f"{HOME}/network").CreateFolder("others")
    switch(si, f"{HOME}/network/others", "theirs", (GROUP, *ODD))
    for at, name in enumerate(names["distributed_switch"]):
        switch(si, f"{ABROAD}/network", name, () if at else (*names["port_group"], GROUP, *ODD))
    out_of_service(si, disconnected=f"{THEIRS}/lost.test", maintained=f"{THEIRS}/repaired.test")


def _hosts(si: Any, disks: Path) -> None:
    """Clusters of one name in three folders, with hosts and datastores; one of these in a datastore cluster."""
    si.content.rootFolder.CreateFolder("elsewhere").CreateDatacenter("abroad")
    find(si, f"{HOME}/host").CreateFolder("others").CreateFolder("gpu")
    found = {
        THEIRS: ("theirs.test", "lost.test", "repaired.test"),
        f"{ABROAD}/host/{CLUSTER}": ("abroad.test",),
        f"{ABROAD}/host/WCP-compute": ("far.test",),
    }
    for path, hosts in found.items():
        folder, _, name = path.rpartition("/")
        cluster = find(si, folder).CreateClusterEx(name, vim.cluster.ConfigSpecEx())
        for each in hosts:
            spec = vim.host.ConnectSpec(hostName=each, userName="root", password="-", force=True)
            settled(cluster.AddHost_Task(spec, asConnected=True))
    stores = {f"{THEIRS}/theirs.test": "theirs", f"{ABROAD}/host/{CLUSTER}/abroad.test": STORE}
    for host, name in stores.items():
        (disks / host.strip("/").replace("/", "-")).mkdir()
        system = find(si, host).configManager.datastoreSystem
        system.CreateLocalDatastore(name, str(disks / host.strip("/").replace("/", "-")))
    pod = find(si, f"{HOME}/datastore").CreateStoragePod("fast")
    settled(pod.MoveIntoFolder_Task([find(si, f"{HOME}/datastore/theirs")]))
