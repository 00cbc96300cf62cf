"""The checks of the Pod Security Standards (policy/ of k8s.io/pod-security-admission): what a pod may not
have at a level, in its words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from bfinfra.sandbox.kubernetes.objects import Object, dig

Check = Callable[[Object, int], str]
"""A pod and the policy's minor version → the reason and its details; "" where it is content."""
BASELINE, RESTRICTED = "baseline", "restricted"
CAPABILITIES = {
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
}
TYPES = {"", "container_t", "container_init_t", "container_kvm_t"}
VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
SYSCTLS = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
}
"""The safe ones, and the minor version from which on."""
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


def broken(level: str, minor: int, pod: Object) -> list[str]:
    """Return the settings of a pod (or a template) that its level forbids; empty where it may run."""
    checks = {BASELINE: BASELINES, RESTRICTED: RESTRICTEDS}.get(level, ())
    return [found for check in checks if (found := check(pod, minor))]


def _containers(pod: Object) -> list[Object]:
    spec = pod.get("spec") or {}
    return [
        each
        for kind in ("initContainers", "containers", "ephemeralContainers")
        for each in spec.get(kind) or []
    ]


def _quoted(values: Iterable[str]) -> str:
    return ", ".join(json.dumps(each) for each in values)


def _named(what: str, names: list[str]) -> str:
    return f"{what}{'' if len(names) == 1 else 's'} {_quoted(names)}"


def _setters(pod: Object, path: tuple[str, ...], bad: Callable[[Any], bool]) -> tuple[str, list[Any]]:
    """The pod and containers that set a field of a securityContext wrongly (`pod and container "a"`), and
    the values.
    """
    own = dig(pod, "spec", "securityContext", *path)
    of_pod = [own] if own is not None and bad(own) else []
    found = [
        (each["name"], value)
        for each in _containers(pod)
        if (value := dig(each, "securityContext", *path)) is not None and bad(value)
    ]
    names = [
        *(["pod"] if of_pod else []),
        *([_named("container", [name for name, _ in found])] if found else []),
    ]
    return " and ".join(names), [*of_pod, *(value for _, value in found)]


def _unset(pod: Object, path: tuple[str, ...]) -> list[str]:
    """Names of containers for which neither they nor the pod set the field."""
    if dig(pod, "spec", "securityContext", *path) is not None:
        return []
    return [each["name"] for each in _containers(pod) if dig(each, "securityContext", *path) is None]


def _app_armor(pod: Object, _: int) -> str:
    who, values = _setters(
        pod, ("appArmorProfile", "type"), lambda value: value not in ("RuntimeDefault", "Localhost")
    )
    notes = pod.get("metadata", {}).get("annotations") or {}
    bad = sorted(
        f"{key}={json.dumps(value)}"
        for key, value in notes.items()
        if key.startswith(APPARMOR)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    found = [*sorted({*values}), *bad]
    setters = " and ".join(
        each for each in (who, f"annotation{'' if len(bad) == 1 else 's'}" if bad else "") if each
    )
    return (
        (
            f"forbidden AppArmor profile{'' if len(found) == 1 else 's'} ({setters} must not set AppArmor "
            f"profile type to {_quoted(found)})"
        )
        if found
        else ""
    )


def _capabilities(pod: Object, allowed: set[str]) -> str:
    found = {
        each["name"]: bad
        for each in _containers(pod)
        if (bad := {*(dig(each, "securityContext", "capabilities", "add") or [])} - allowed)
    }
    added = _quoted(sorted({each for bad in found.values() for each in bad}))
    return (
        f"{_named('container', [*found])} must not include {added} in securityContext.capabilities.add"
        if found
        else ""
    )


def _default_capabilities(pod: Object, _: int) -> str:
    found = _capabilities(pod, CAPABILITIES)
    return f"non-default capabilities ({found})" if found else ""


def _host_namespaces(pod: Object, _: int) -> str:
    found = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if dig(pod, "spec", name)]
    return f"host namespaces ({', '.join(found)})" if found else ""


def _host_path(pod: Object, _: int) -> str:
    found = [each["name"] for each in dig(pod, "spec", "volumes") or [] if "hostPath" in each]
    return f"hostPath volumes ({_named('volume', found)})" if found else ""


def _host_ports(pod: Object, _: int) -> str:
    found = {
        each["name"]: ports
        for each in _containers(pod)
        if (ports := {str(port["hostPort"]) for port in each.get("ports") or [] if port.get("hostPort")})
    }
    every = sorted({port for each in found.values() for port in each})
    uses, what = "uses" if len(found) == 1 else "use", "hostPort" if len(every) == 1 else "hostPorts"
    return f"hostPort ({_named('container', [*found])} {uses} {what} {', '.join(every)})" if found else ""


def _privileged(pod: Object, _: int) -> str:
    found = [each["name"] for each in _containers(pod) if dig(each, "securityContext", "privileged")]
    return (
        f"privileged ({_named('container', found)} must not set securityContext.privileged=true)"
        if found
        else ""
    )


def _proc_mount(pod: Object, _: int) -> str:
    who, values = _setters(pod, ("procMount",), lambda value: value != "Default")
    return (
        f"procMount ({who} must not set securityContext.procMount to {_quoted(sorted({*values}))})"
        if who
        else ""
    )


def _selinux(pod: Object, minor: int) -> str:
    types = TYPES | ({"container_engine_t"} if minor >= 31 else set())
    who, values = _setters(
        pod,
        ("seLinuxOptions",),
        lambda options: (
            options.get("type", "") not in types or bool(options.get("user") or options.get("role"))
        ),
    )
    bad = sorted({each.get("type", "") for each in values} - types)
    found = [_named("type", bad)] if bad else []
    found += [f"{name} may not be set" for name in ("user", "role") if any(each.get(name) for each in values)]
    return (
        f"seLinuxOptions ({who} set forbidden securityContext.seLinuxOptions: {'; '.join(found)})"
        if who
        else ""
    )


def _seccomp(pod: Object, _: int) -> str:
    who, values = _setters(
        pod, ("seccompProfile", "type"), lambda value: value not in ("RuntimeDefault", "Localhost")
    )
    return (
        (
            f"seccompProfile ({who} must not set securityContext.seccompProfile.type to "
            f"{_quoted(sorted({*values}))})"
        )
        if who
        else ""
    )


def _sysctls(pod: Object, minor: int) -> str:
    found = [
        each["name"]
        for each in dig(pod, "spec", "securityContext", "sysctls") or []
        if SYSCTLS.get(each["name"], minor + 1) > minor
    ]
    return f"forbidden sysctls ({', '.join(found)})" if found else ""


def _host_process(pod: Object, _: int) -> str:
    who, _values = _setters(pod, ("windowsOptions", "hostProcess"), bool)
    return f"hostProcess ({who} must not set securityContext.windowsOptions.hostProcess=true)" if who else ""


def _windows(pod: Object, minor: int) -> bool:
    """Windows has no capabilities, escalation or seccomp; from 1.25 on its pods declare their system."""
    return minor >= 25 and dig(pod, "spec", "os", "name") == "windows"


def _escalation(pod: Object, minor: int) -> str:
    found = [
        each["name"]
        for each in _containers(pod)
        if dig(each, "securityContext", "allowPrivilegeEscalation") is not False
    ]
    if not found or _windows(pod, minor):
        return ""
    return (
        f"allowPrivilegeEscalation != false ({_named('container', found)} must set "
        "securityContext.allowPrivilegeEscalation=false)"
    )


def _no_capabilities(pod: Object, minor: int) -> str:
    if _windows(pod, minor):
        return _default_capabilities(pod, minor)
    keep = [
        each["name"]
        for each in _containers(pod)
        if "ALL" not in (dig(each, "securityContext", "capabilities", "drop") or [])
    ]
    found = (
        [f'{_named("container", keep)} must set securityContext.capabilities.drop=["ALL"]'] if keep else []
    )
    found += [added] if (added := _capabilities(pod, {"NET_BIND_SERVICE"})) else []
    return f"unrestricted capabilities ({'; '.join(found)})" if found else ""


def _volumes(pod: Object, _: int) -> str:
    found = {
        each["name"]: bad
        for each in dig(pod, "spec", "volumes") or []
        if (bad := {key for key in each if key not in ("name", *VOLUMES)})
    }
    types = sorted({kind for bad in found.values() for kind in bad})
    uses, what = "uses" if len(found) == 1 else "use", "restricted volume type"
    return (
        f"restricted volume types ({_named('volume', [*found])} {uses} {_named(what, types)})"
        if found
        else ""
    )


def _not_root(pod: Object, _: int) -> str:
    who, _values = _setters(pod, ("runAsNonRoot",), lambda value: value is False)
    if who:
        return f"runAsNonRoot != true ({who} must not set securityContext.runAsNonRoot=false)"
    left = _unset(pod, ("runAsNonRoot",))
    return (
        (
            f"runAsNonRoot != true (pod or {_named('container', left)} must set "
            "securityContext.runAsNonRoot=true)"
        )
        if left
        else ""
    )


def _user(pod: Object, minor: int) -> str:
    who, _values = _setters(pod, ("runAsUser",), lambda value: value == 0)
    return f"runAsUser=0 ({who} must not set runAsUser=0)" if who and minor >= 23 else ""


def _seccomp_given(pod: Object, minor: int) -> str:
    if minor < 19 or _windows(pod, minor):
        return ""
    left = _unset(pod, ("seccompProfile", "type"))
    missing = (
        (
            f"seccompProfile (pod or {_named('container', left)} must set "
            'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
        )
        if left
        else ""
    )
    return _seccomp(pod, minor) or missing


_BOTH = (_host_ports, _privileged, _proc_mount, _selinux)
BASELINES: tuple[Check, ...] = (
    _app_armor,
    _default_capabilities,
    _host_namespaces,
    _host_path,
    *_BOTH,
    _seccomp,
    _sysctls,
    _host_process,
)
RESTRICTEDS: tuple[Check, ...] = (
    _app_armor,
    _host_namespaces,
    *_BOTH,
    _sysctls,
    _host_process,
    _escalation,
    _no_capabilities,
    _volumes,
    _not_root,
    _user,
    _seccomp_given,
)
"""In the order of their ids, without what a check of the stricter level reports itself."""
