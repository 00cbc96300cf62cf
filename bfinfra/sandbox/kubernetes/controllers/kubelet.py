"""What nodes do with pods: pull, mount, run, end."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from bfinfra.sandbox.kubernetes.bitfusion_log import asked, printed, servers_of
from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.logs import Logs
from bfinfra.sandbox.kubernetes.mpi_log import benchmark
from bfinfra.sandbox.kubernetes.objects import Object, condition, dig, name_of, namespace_of, stamp, uid_of
from bfinfra.sandbox.kubernetes.outside import Outside, Work
from bfinfra.sandbox.kubernetes.pods import config_maps_of, containers, secrets_of
from bfinfra.sandbox.kubernetes.reachability import reported, tried
from bfinfra.sandbox.kubernetes.store import Change, Key

PODS: Key = ("", "pods")
SOURCES: tuple[Key, ...] = (("", "secrets"), ("", "configmaps"), ("", "serviceaccounts"))
ENDED = ("Succeeded", "Failed")
POLICIES: Key = ("networking.k8s.io", "networkpolicies")
KUBELET = "kubelet"


class Kubelet:
    """All nodes at once. Pods that wait for a Secret, a ConfigMap or a pull credential are looked at when one comes."""

    kinds = (PODS,)

    def __init__(self, loop: Loop, outside: Outside, logs: Logs) -> None:
        self._loop, self._cluster, self._outside, self._logs = loop, loop.cluster, outside, logs
        loop.cluster.lingering[PODS] = lambda pod: (
            bool(dig(pod, "spec", "nodeName")) and dig(pod, "status", "phase") not in ENDED and pod["metadata"].get("deletionGracePeriodSeconds", 0) > 0
        )

    def touched(self, change: Change) -> Iterable[Item]:
        """Pods that wait for what came."""
        if change.key in SOURCES:
            for pod in self._cluster.store.all(PODS, namespace_of(change.after)):
                if dig(pod, "status", "phase") == "Pending":
                    yield (PODS, namespace_of(pod), name_of(pod))

    def look(self, item: Item, thing: Object | None) -> None:
        """The next step of a pod on a node."""
        if thing is None:
            self._logs.sweep()
        if thing is None or not dig(thing, "spec", "nodeName"):
            return
        uid, phase = uid_of(thing), dig(thing, "status", "phase")
        if thing["metadata"].get("deletionTimestamp"):
            self._loop.once(("end", uid), "delete", lambda: self._cluster.remove(thing))
        elif phase == "Pending":
            hindrance = self._hindrance(thing)
            if hindrance:
                self._wait(thing, *hindrance)
            else:
                self._loop.once(("start", uid), "pod", lambda: self._start(item, uid))
        elif phase == "Running" and self._ends(thing):
            self._loop.once(("run", uid), "workload", lambda: self._finish(item, uid))

    def _hindrance(self, pod: Object) -> tuple[str, str] | None:
        namespace = namespace_of(pod)
        for kind, plural, names in (("secret", "secrets", secrets_of(pod)), ("configmap", "configmaps", config_maps_of(pod))):
            for name in sorted(names):
                if self._cluster.get("", plural, name, namespace) is None:
                    return "ContainerCreating", f'MountVolume.SetUp failed for volume: {kind} "{name}" not found'
        for container in containers(pod):
            host = container["image"].partition("/")[0]
            registry = self._outside.registries.get(host)
            if registry and (registry.username, str(registry.password)) not in self._credentials(pod, host):
                why = f'Back-off pulling image "{container["image"]}": pull access denied, {host} asks for credentials: 401 Unauthorized'
                return "ImagePullBackOff", why
        return None

    def _credentials(self, pod: Object, host: str) -> set[tuple[str, str]]:
        namespace = namespace_of(pod)
        account = self._cluster.get("", "serviceaccounts", dig(pod, "spec", "serviceAccountName", default="default"), namespace) or {}
        names = [each["name"] for each in [*(dig(pod, "spec", "imagePullSecrets") or []), *(account.get("imagePullSecrets") or [])]]
        found = set()
        for name in names:
            secret = self._cluster.get("", "secrets", name, namespace) or {}
            found |= credentials(dig(secret, "data", ".dockerconfigjson", default=""), host)
        return found

    def _wait(self, pod: Object, reason: str, message: str) -> None:
        states = [{**_state(each, {"waiting": {"reason": reason, "message": message}}), "ready": False} for each in pod["spec"]["containers"]]
        if states != dig(pod, "status", "containerStatuses"):
            self._cluster.set_status(pod, {**pod["status"], "containerStatuses": states}, KUBELET)
            self._cluster.event("FailedMount" if reason == "ContainerCreating" else "Failed", message, pod)

    def _start(self, item: Item, uid: str) -> None:
        pod = self._cluster.store.get(*item)
        if pod is None or uid_of(pod) != uid or self._hindrance(pod) or pod["metadata"].get("deletionTimestamp"):
            return
        when = stamp(self._cluster.clock.now())
        for container in containers(pod):
            lines, fine = self._output(pod, container, when)
            self._logs.add(uid, container["name"], lines, failed=not fine)
        states = [{**_state(each, {"running": {"startedAt": when}}), "ready": True, "started": True} for each in pod["spec"]["containers"]]
        ready = [condition(kind, status=True, when=when) for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")]
        number = int(pod["metadata"]["resourceVersion"]) % 250 + 2
        status = {**pod["status"], "phase": "Running", "startTime": when, "conditions": ready, "containerStatuses": states, "podIP": f"192.168.0.{number}",
                  "podIPs": [{"ip": f"192.168.0.{number}"}], "hostIP": "172.24.208.10"}  # fmt: skip
        self._cluster.set_status(pod, status, KUBELET)

    def _ends(self, pod: Object) -> bool:
        return bool(dig(pod, "spec", "restartPolicy") != "Always")

    def _finish(self, item: Item, uid: str) -> None:
        pod = self._cluster.store.get(*item)
        if pod is None or uid_of(pod) != uid or dig(pod, "status", "phase") != "Running":
            return
        when = stamp(self._cluster.clock.now())
        works = [self._work(container) for container in pod["spec"]["containers"]]
        code = 1 if uid in self._logs.failed else max((work.exit_code for work in works if work), default=0)
        began = dig(pod, "status", "startTime")
        end = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": began, "finishedAt": when}
        states = [{**_state(each, {"terminated": {**end, **self._last_words(uid, each, code)}}), "ready": False, "started": False} for each in pod["spec"]["containers"]]
        conditions = [
            condition(each["type"], status=each["type"] in ("Initialized", "PodScheduled"), when=when, reason="" if code else "PodCompleted")
            for each in pod["status"]["conditions"]
        ]
        phase = "Failed" if code else "Succeeded"
        self._cluster.set_status(pod, {**pod["status"], "phase": phase, "conditions": conditions, "containerStatuses": states}, KUBELET)

    def _last_words(self, uid: str, container: Object, code: int) -> Object:
        """The end of the log of a container that failed, where it asks for that."""
        log = self._logs.end(uid, container["name"]) if code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError" else ""
        return {"message": log} if log else {}

    def _work(self, container: Object) -> Work | None:
        return next((work for image, work in self._outside.images.items() if fnmatchcase(container["image"], image)), None)

    def _output(self, pod: Object, container: Object, when: str) -> tuple[list[str], bool]:
        work = self._work(container)
        if work and work.output is not None:
            return work.output.splitlines(), True
        if ways := tried(container):
            return reported(ways, pod, self._cluster.store.all(POLICIES, namespace_of(pod)), self._outside.serves)
        ask = asked(container, self._environment(pod, container))
        if ask is None:
            return benchmark(container), True
        servers = self._servers(pod, container)
        if servers is None:
            up = dict(self._outside.gpu_servers())
            return printed(ask, list(up) or ["127.0.0.1:56001"], up, when)
        if not servers:
            return [f"[ERROR] {when} Failed to parse /etc/bitfusion/servers.conf: no server is reachable"], False
        return printed(ask, servers, {each: server for each in servers if (server := self._outside.gpu_server(each))}, when)

    def _servers(self, pod: Object, container: Object) -> list[str] | None:
        """The servers of the servers.conf that the container mounts; None where its image brings its own."""
        mounted = {each["name"] for each in container.get("volumeMounts") or []}
        for volume in dig(pod, "spec", "volumes", default=[]):
            sources = [volume.get("secret"), *(each.get("secret") for each in dig(volume, "projected", "sources", default=[]))]
            for source in sources if volume["name"] in mounted else ():
                secret = source and self._cluster.get("", "secrets", source.get("secretName") or source.get("name", ""), namespace_of(pod))
                if secret and "servers.conf" in (secret.get("data") or {}):
                    return servers_of(base64.b64decode(secret["data"]["servers.conf"]).decode(errors="replace"))
        return None

    def _environment(self, pod: Object, container: Object) -> Mapping[str, str]:
        found = {}
        for each in container.get("env") or []:
            found[each["name"]] = str(each.get("value", ""))
            reference = dig(each, "valueFrom", "configMapKeyRef")
            if reference:
                values = self._cluster.get("", "configmaps", reference["name"], namespace_of(pod)) or {}
                found[each["name"]] = str(dig(values, "data", reference["key"], default=""))
        return found


def credentials(encoded: str, host: str) -> set[tuple[str, str]]:
    """(user, password) that a .dockerconfigjson has for a registry."""
    try:
        held = json.loads(base64.b64decode(encoded)).get("auths", {}).get(host, {}) if encoded else {}
        if held.get("auth"):
            user, _, password = base64.b64decode(held["auth"]).decode().partition(":")
            return {(user, password)}
        return {(held.get("username", ""), held.get("password", ""))} if held else set()
    except (ValueError, AttributeError):
        return set()


def _state(container: Object, state: Object) -> Object:
    return {"name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0, "state": state}
