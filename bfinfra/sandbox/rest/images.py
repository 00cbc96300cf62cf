"""Images of clusters in vSphere Lifecycle Manager: drafts, commits, scans, checks and remediation. Source:
com.vmware.esx.settings.clusters.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory import vgpus
from bfinfra.sandbox.inventory.hosts import offer_vgpus
from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.rest.cis_tasks import begin, localized, running
from bfinfra.sandbox.rest.content import moment
from bfinfra.sandbox.rest.depots import versions
from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.shapes import check

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory import Managed
    from bfinfra.sandbox.rest.state import Info

PATH = "/esx/settings/clusters/{cluster}/software"
SERVICE = "com.vmware.esx.settings.clusters.software"
SPECIFICATION, REMEDIATION = (
    "VcIntegrity.lifecycleSoftwareSpecification",
    "VcIntegrity.lifecycleSoftwareRemediation",
)
UPDATE = {"components_to_set?": dict, "components_to_delete?": [str]}
HOSTS = {"commit?": str, "hosts?": [str]}


@route("GET", PATH)
def software(call: Call, cluster: str) -> Any:
    """The cluster's image. NOT_FOUND of a cluster without."""
    call.need(f"{SPECIFICATION}.Read", cluster, cluster)
    return _software(_image(call, cluster)["components"])


@route("GET", PATH + "/compliance")
def compliance(call: Call, cluster: str) -> Any:
    """The result of the last scan."""
    call.need(f"{SPECIFICATION}.Read", cluster, cluster)
    _image(call, cluster)
    return call.state.scans.get(cluster) or _scan(call, cluster)


@route("GET", PATH + "/drafts")
def drafts(call: Call, cluster: str) -> Any:
    """The drafts, without what is in them."""
    call.need(f"{SPECIFICATION}.Read", cluster, cluster)
    return {
        identity: {"metadata": each["metadata"]}
        for identity, each in call.state.drafts.items()
        if each["cluster"] == cluster
    }


@route("POST", PATH + "/drafts")
def create_draft(call: Call, cluster: str) -> str:
    """A draft from the image. ALREADY_EXISTS where the caller has one."""
    call.need(f"{SPECIFICATION}.Write", cluster, cluster)
    image, owner = _image(call, cluster), _owner(call)
    with call.state.lock:
        if any(
            each["cluster"] == cluster and each["metadata"]["owner"] == owner
            for each in call.state.drafts.values()
        ):
            raise Refused("ALREADY_EXISTS", f"There is already a draft created by {owner}.")
        identity = str(uuid.uuid4())
        metadata = {"owner": owner, "status": "VALID", "creation_time": moment(call.inventory)}
        call.state.drafts[identity] = {
            "cluster": cluster,
            "metadata": metadata,
            "components": dict(image["components"]),
        }
    return identity


@route("GET", PATH + "/drafts/{draft}")
def draft(call: Call, cluster: str, draft: str) -> Any:
    """One of them."""
    call.need(f"{SPECIFICATION}.Read", cluster, cluster)
    found = _draft(call, cluster, draft)
    return {"metadata": found["metadata"], "software": _software(found["components"])}


@route("DELETE", PATH + "/drafts/{draft}")
def discard(call: Call, cluster: str, draft: str) -> None:
    """Forget one."""
    call.need(f"{SPECIFICATION}.Write", cluster, cluster)
    _draft(call, cluster, draft)
    del call.state.drafts[draft]


@route("PATCH", PATH + "/drafts/{draft}/software/components")
def components(call: Call, cluster: str, draft: str) -> None:
    """Set and remove components."""
    call.need(f"{SPECIFICATION}.Write", cluster, cluster)
    spec, found = check(call.spec, UPDATE), _draft(call, cluster, draft)
    gone = spec.get("components_to_delete", [])
    if unknown := [each for each in gone if each not in found["components"]]:
        raise missing("The component", ", ".join(unknown))
    known = versions(call.state)
    for name, version in spec.get("components_to_set", {}).items():
        if (name, version) not in known:
            raise missing("The component", f"{name} {version}")
    kept = {name: each for name, each in found["components"].items() if name not in gone}
    found["components"] = kept | spec.get("components_to_set", {})


@route("POST", PATH + "/drafts/{draft}", action="commit")
def commit(call: Call, cluster: str, draft: str) -> str:
    """Make a draft the image; a task."""
    call.need(f"{SPECIFICATION}.Write", cluster, cluster)
    check(call.spec, {"message?": str})
    found = _draft(call, cluster, draft)
    _alone(call)

    def work() -> Any:
        with call.state.lock:
            call.state.images[cluster] = {"components": found["components"], "commit": str(uuid.uuid4())}
            call.state.drafts.pop(draft, None)
        return call.state.images[cluster]["commit"]

    return begin(call, SERVICE, "commit", call.state.world.durations["task"], work)


@route("POST", PATH, action="scan")
def scan(call: Call, cluster: str) -> str:
    """Compare the hosts with the image; a task."""
    call.need(f"{SPECIFICATION}.Read", cluster, cluster)
    _image(call, cluster)
    _alone(call)
    return begin(call, SERVICE, "scan", call.state.world.durations["task"], lambda: _scan(call, cluster))


@route("POST", PATH, action="check")
def precheck(call: Call, cluster: str) -> str:
    """Start the check before a remediation, which reports what prevents one. Return its task."""
    call.need(f"{REMEDIATION}.Read", cluster, cluster)
    hosts = _hosts(call, cluster, check(call.spec, HOSTS))
    _alone(call)
    started = moment(call.inventory)

    def work() -> Any:
        rows = [_checked(call, host) for host in hosts]
        bad = any(row["status"] == "ERROR" for row in rows)
        return {
            "status": "ERROR" if bad else "OK",
            "start_time": started,
            "end_time": moment(call.inventory),
            "commit": _image(call, cluster)["commit"],
            "host_info": _info(hosts),
            "entity_results": rows,
        }

    return begin(call, SERVICE, "check", call.state.world.durations["task"], work)


@route("POST", PATH, action="apply")
def apply(call: Call, cluster: str) -> str:
    """Install the image on hosts; a task."""
    call.need(f"{REMEDIATION}.Write", cluster, cluster)
    spec = check(call.spec, {**HOSTS, "accept_eula?": bool})
    hosts = _hosts(call, cluster, spec)
    if not spec.get("accept_eula"):
        raise Refused("INVALID_ARGUMENT", "The End User License Agreement has not been accepted.")
    _alone(call)
    wanted = _image(call, cluster)["components"]
    if all(_installed(call, host) == wanted for host in hosts):
        raise Refused("ALREADY_IN_DESIRED_STATE", "The hosts are in the desired state.")
    seconds, started = call.state.world.durations["reboot"] * len(hosts), moment(call.inventory)
    return begin(call, SERVICE, "apply", seconds, lambda: _applied(call, cluster, hosts, started))


def _applied(call: Call, cluster: str, hosts: list[Managed], started: str) -> Any:
    image, failed = _image(call, cluster), []
    for host in hosts:
        words = _blocked(call, host)
        with call.state.faults.during("rest", "RemediateHost", host.name) as effect:
            words += [effect.message] if effect.message else []
        if words:
            failed.append((host, words))
            continue
        with call.inventory.lock:
            vibs = call.inventory.get(host["configManager"].imageConfigManager).hidden["vibs"]
            for name in _installed(call, host):
                del vibs[name]
            vibs.update(image["components"])
            offer_vgpus(call.inventory, host)
            call.inventory.touch(host)
    call.inventory.room_changed()
    _scan(call, cluster)
    bad = {host.moid: words for host, words in failed}
    ended = {"start_time": started, "end_time": moment(call.inventory)}
    return {
        "status": {"status": "ERROR" if bad else "OK", **ended, "notifications": {}},
        "commit": image["commit"],
        "host_info": _info(hosts),
        "host_status": {
            host.moid: {
                "status": "ERROR" if host.moid in bad else "OK",
                **ended,
                "notifications": {"errors": [_notification(call, each) for each in bad.get(host.moid, [])]},
            }
            for host in hosts
        },
        "successful_hosts": [host.moid for host in hosts if host.moid not in bad],
        "failed_hosts": sorted(bad),
        "skipped_hosts": [],
    }


def _scan(call: Call, cluster: str) -> Info:
    """The hosts as they are beside the image; kept until the next scan."""
    image = _image(call, cluster)
    rows = {host.moid: _compared(call, host, image) for host in _of(call, cluster)}

    def those(status: str) -> list[str]:
        return sorted(moid for moid, each in rows.items() if each["status"] == status)

    call.state.scans[cluster] = {
        "impact": "REBOOT_REQUIRED" if those("NON_COMPLIANT") else "NO_IMPACT",
        "status": "NON_COMPLIANT" if those("NON_COMPLIANT") else "COMPLIANT",
        "notifications": {},
        "scan_time": moment(call.inventory),
        "commit": image["commit"],
        "compliant_hosts": those("COMPLIANT"),
        "non_compliant_hosts": those("NON_COMPLIANT"),
        "incompatible_hosts": [],
        "unavailable_hosts": [],
        "hosts": rows,
        "host_info": _info(_of(call, cluster)),
    }
    return call.state.scans[cluster]


def _compared(call: Call, host: Managed, image: Info) -> Info:
    now, wanted = _installed(call, host), image["components"]
    base = {"version": host["config"].product.version}
    rows = {
        name: {
            "status": "COMPLIANT" if now.get(name) == wanted.get(name) else "NON_COMPLIANT",
            **({"current": {"version": now[name]}} if name in now else {}),
            **({"target": {"version": wanted[name]}} if name in wanted else {}),
            "notifications": {},
        }
        for name in sorted({*now, *wanted})
    }
    same = now == wanted
    return {
        "impact": "NO_IMPACT" if same else "REBOOT_REQUIRED",
        "status": "COMPLIANT" if same else "NON_COMPLIANT",
        "notifications": {},
        "scan_time": moment(call.inventory),
        "commit": image["commit"],
        "base_image": {"status": "COMPLIANT", "current": base, "target": base, "notifications": {}},
        "add_on": {"status": "COMPLIANT", "notifications": {}},
        "components": rows,
        "solutions": {},
    }


def _installed(call: Call, host: Managed) -> dict[str, str]:
    """The components of a host that its base image doesn't have."""
    vibs = call.inventory.get(host["configManager"].imageConfigManager).hidden["vibs"]
    given = call.inventory.given(call.inventory.get(host.parent))
    base = given.hosts[host.name].vibs if given else {}
    added = {name for found in call.state.world.depots.values() for name in found}
    return {name: version for name, version in vibs.items() if name in added or name not in base}


def _blocked(call: Call, host: Managed) -> list[str]:
    """Return the running machines that can't move and so keep a host out of maintenance mode."""
    stay = [
        vm.name
        for vm in call.inventory.of(vim.VirtualMachine)
        if any(isinstance(each, vim.vm.device.VirtualPCIPassthrough) for each in vm["config"].hardware.device)
        and vm["runtime"].powerState == "poweredOn"
        and vm["runtime"].host == host.ref
    ]
    stay += [each for each in vgpus.guests(host) if each not in call.inventory.objects]
    return [
        f"Host {host.name} can't enter maintenance mode: the virtual machine {each.rpartition('/')[2]} has a "
        "PCI device and can't be migrated."
        for each in stay
    ]


def _checked(call: Call, host: Managed) -> Info:
    words = [localized("com.vmware.vcint.maintenance", each) for each in _blocked(call, host)]
    name = localized("check.maintenance", "Maintenance mode")
    return {
        "type": "HOST",
        "host": host.moid,
        "status": "ERROR" if words else "OK",
        "check_statuses": [
            {
                "check": {"check": "com.vmware.vcint.maintenance", "name": name, "description": name},
                "status": "ERROR" if words else "OK",
                "issues": words,
            }
        ],
    }


def _software(given: dict[str, str]) -> Info:
    return {
        "base_image": {"version": "8.0.3-0.0.24022510"},
        "components": {name: {"version": version} for name, version in given.items()},
        "solutions": {},
    }


def _image(call: Call, cluster: str) -> Info:
    """The image of a cluster. NOT_FOUND where it has none."""
    state, home = call.state, call.inventory.objects.get(cluster)
    given = call.inventory.given(home) if home else None
    if given is None or given.image is None:
        raise missing("The desired software document of the cluster", cluster)
    return state.images.get(cluster) or {"components": dict(given.image), "commit": "1"}


def _draft(call: Call, cluster: str, draft: str) -> Info:
    found = call.state.drafts.get(draft)
    if found is None or found["cluster"] != cluster:
        raise missing("The draft", draft)
    return found


def _alone(call: Call) -> None:
    if running(call, SERVICE):
        raise Refused("NOT_ALLOWED_IN_CURRENT_STATE", "Another operation is in progress.")


def _owner(call: Call) -> str:
    user, _, domain = call.session.user.name.partition("@")
    return f"{domain.upper()}\\{user}"


def _of(call: Call, cluster: str) -> list[Managed]:
    home = call.inventory.objects[cluster]
    return [each for each in call.inventory.children(home) if each.is_a(vim.HostSystem)]


def _hosts(call: Call, cluster: str, spec: Info) -> list[Managed]:
    _image(call, cluster)
    there = {host.moid: host for host in _of(call, cluster)}
    if unknown := [each for each in spec.get("hosts", []) if each not in there]:
        raise Refused("INVALID_ARGUMENT", f"spec.hosts: {', '.join(unknown)} are not in the cluster")
    return [there[each] for each in spec.get("hosts") or there]


def _info(hosts: list[Managed]) -> Info:
    return {host.moid: {"name": host.name} for host in hosts}


def _notification(call: Call, words: str) -> Info:
    message = localized("com.vmware.vcIntegrity.lifecycle.remediation", words)
    return {"id": message["id"], "time": moment(call.inventory), "message": message}
