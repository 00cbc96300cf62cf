"""The kubelets: they pull a pod's images, mount its volumes, run and end it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping

from bfinfra.sandbox.kubernetes.container_files import ContainerFiles, FilesError, volumes_of
from bfinfra.sandbox.kubernetes.controllers.container_output import ContainerOutput
from bfinfra.sandbox.kubernetes.controllers.dra_drivers import DraDrivers
from bfinfra.sandbox.kubernetes.controllers.gpu_operands import is_driver, on
from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.controllers.pod_claims import CLAIMS, unprepared
from bfinfra.sandbox.kubernetes.flexdirect_log import folders_of, has_folder
from bfinfra.sandbox.kubernetes.logs import Logs
from bfinfra.sandbox.kubernetes.nvidia import CODE as NVIDIA_CODE
from bfinfra.sandbox.kubernetes.nvidia import driver_words
from bfinfra.sandbox.kubernetes.nvidia import is_plugin as is_nvidia
from bfinfra.sandbox.kubernetes.nvidia import last_words as nvidia_words
from bfinfra.sandbox.kubernetes.nvidia_dra import drivers_of
from bfinfra.sandbox.kubernetes.objects import Object, condition, dig, name_of, namespace_of, stamp, uid_of
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.plugins import CODE, advertised, last_words, registers
from bfinfra.sandbox.kubernetes.pods import config_maps_of, containers, secrets_of
from bfinfra.sandbox.kubernetes.store import Change, Key

PODS: Key = ("", "pods")
SOURCES: tuple[Key, ...] = (("", "secrets"), ("", "configmaps"), ("", "serviceaccounts"))
ENDED = ("Succeeded", "Failed")
KUBELET = "kubelet"
PREPARE = "Failed to prepare dynamic resources"


class Kubelet:
    """All nodes at once. Pods that wait for a Secret, a ConfigMap or a pull credential are looked at when one
    comes.
    """

    kinds = (PODS,)

    def __init__(self, loop: Loop, outside: Outside, logs: Logs, drivers: DraDrivers) -> None:
        self._loop, self._cluster, self._outside, self._logs = loop, loop.cluster, outside, logs
        self._drivers = drivers
        self._output = ContainerOutput(loop.cluster, outside)
        loop.cluster.lingering[PODS] = lambda pod: (
            bool(dig(pod, "spec", "nodeName"))
            and dig(pod, "status", "phase") not in ENDED
            and pod["metadata"].get("deletionGracePeriodSeconds", 0) > 0
        )

    def touched(self, change: Change) -> Iterable[Item]:
        """Pods that wait for what came."""
        if change.key in SOURCES:
            waiting = self._cluster.store.all(PODS, namespace_of(change.after))
        elif change.key == CLAIMS:
            every = self._cluster.store.all(PODS, namespace_of(change.after))
            waiting = [pod for pod in every if dig(pod, "spec", "resourceClaims")]
        elif change.key == PODS and (is_driver(change.after) or drivers_of(change.after)):
            every = self._cluster.store.all(PODS)
            asks = [pod for pod in every if dig(pod, "spec", "resourceClaims") or drivers_of(pod)]
            waiting = [pod for pod in asks if on(pod) == on(change.after) and pod is not change.after]
        else:
            return
        for pod in waiting:
            if dig(pod, "status", "phase") == "Pending":
                yield (PODS, namespace_of(pod), name_of(pod))

    def look(self, item: Item, thing: Object | None) -> None:
        """The next step of a pod on a node."""
        if thing is None:
            self._logs.sweep()
            self._cluster.webhooks.services.sweep()
        if thing is None or not dig(thing, "spec", "nodeName"):
            return
        uid, phase = uid_of(thing), dig(thing, "status", "phase")
        if thing["metadata"].get("deletionTimestamp"):
            self._loop.once(("end", uid), "delete", lambda: self._cluster.remove(thing))
        elif phase == "Pending":
            hindrance = self._devices(thing) or self._hindrance(thing)
            if hindrance:
                self._wait(thing, *hindrance)
            else:
                self._loop.once(("start", uid), "pod", lambda: self._start(item, uid))
        elif phase == "Running" and _backs_off(thing):
            if not self._crashing(thing, stamp(self._cluster.clock.now())):
                self._loop.once(("start", uid), "pod", lambda: self._start(item, uid))
        elif phase == "Running" and self._ends(thing):
            self._loop.once(("run", uid), "workload", lambda: self._finish(item, uid))

    def _devices(self, pod: Object) -> tuple[str, str, str] | None:
        """As `_hindrance`, for a pod that has claims, or is a DRA driver, whose init container waits for the
        driver of the GPUs.
        """
        node = pod["spec"]["nodeName"]
        claims = dig(pod, "spec", "resourceClaims")
        if claims and (
            why := unprepared(self._cluster, pod, self._drivers.registered(node), self._drivers.gone(node))
        ):
            return ("ContainerCreating", why, "")
        init = dig(pod, "spec", "initContainers", 0, "name", default="")
        if drivers_of(pod) and init and not self._outside.gpus(node).count:
            return ("PodInitializing", "", init)
        return None

    def _hindrance(self, pod: Object) -> tuple[str, str, str] | None:
        """Reason and message, and the init container that it is about, "" where it is about all."""
        namespace = namespace_of(pod)
        for kind, plural, names in (
            ("secret", "secrets", secrets_of(pod)),
            ("configmap", "configmaps", config_maps_of(pod)),
        ):
            for name in sorted(names):
                if self._cluster.get("", plural, name, namespace) is None:
                    return (
                        "ContainerCreating",
                        f'MountVolume.SetUp failed for volume: {kind} "{name}" not found',
                        "",
                    )
        node = self._outside.host(pod["spec"]["nodeName"])
        for name, path in folders_of(pod):
            if not has_folder(node, path, self._outside.kubelet_folder(pod["spec"]["nodeName"])):
                return (
                    "ContainerCreating",
                    (
                        f'MountVolume.SetUp failed for volume "{name}" : hostPath type check failed: {path} '
                        "is not a directory"
                    ),
                    "",
                )
        for container in containers(pod):
            policy, there = (
                container.get("imagePullPolicy"),
                node is not None and node.has_image(container["image"]),
            )
            if there and policy != "Always":
                continue
            init = container["name"] if container in (pod["spec"].get("initContainers") or []) else ""
            if policy == "Never":
                return (
                    "ErrImageNeverPull",
                    f'Container image "{container["image"]}" is not present with pull policy of Never',
                    init,
                )
            host = container["image"].partition("/")[0]
            registry = self._outside.registries.get(host)
            if registry and (registry.username, str(registry.password)) not in self._credentials(pod, host):
                why = (
                    f'Back-off pulling image "{container["image"]}": pull access denied, {host} asks for '
                    "credentials: 401 Unauthorized"
                )
                return "ImagePullBackOff", why, init
        return None

    def _credentials(self, pod: Object, host: str) -> set[tuple[str, str]]:
        namespace = namespace_of(pod)
        account = (
            self._cluster.get(
                "", "serviceaccounts", dig(pod, "spec", "serviceAccountName", default="default"), namespace
            )
            or {}
        )
        names = [
            each["name"]
            for each in [
                *(dig(pod, "spec", "imagePullSecrets") or []),
                *(account.get("imagePullSecrets") or []),
            ]
        ]
        found = set()
        for name in names:
            secret = self._cluster.get("", "secrets", name, namespace) or {}
            found |= credentials(dig(secret, "data", ".dockerconfigjson", default=""), host)
        return found

    def _wait(self, pod: Object, reason: str, message: str, init: str = "") -> None:
        """`init`: the init container that waits; the others wait for it."""
        output, behind = (
            {"waiting": {"reason": reason, "message": message}},
            {"waiting": {"reason": "PodInitializing"}},
        )
        states = [
            {**_state(each, behind if init else output), "ready": False} for each in pod["spec"]["containers"]
        ]
        before = (
            [
                {**_state(each, output if each["name"] == init else behind), "ready": False}
                for each in pod["spec"].get("initContainers") or []
            ]
            if init
            else []
        )
        status = {"containerStatuses": states, **({"initContainerStatuses": before} if before else {})}
        if any(dig(pod, "status", name) != value for name, value in status.items()):
            self._cluster.set_status(pod, {**pod["status"], **status}, KUBELET)
            of = "FailedMount" if reason == "ContainerCreating" else "Failed"
            of = "FailedPrepareDynamicResources" if message.startswith(PREPARE) else of
            if message:
                self._cluster.event(of, message, pod)

    def _start(self, item: Item, uid: str) -> None:
        pod = self._cluster.store.get(*item)
        if (
            pod is None
            or uid_of(pod) != uid
            or self._devices(pod)
            or self._hindrance(pod)
            or pod["metadata"].get("deletionTimestamp")
        ):
            return
        when = stamp(self._cluster.clock.now())
        if crashing := self._crashing(pod, when):
            self._crash(pod, crashing, when)
            return
        volumes = volumes_of(pod, lambda plural, name: self._cluster.get("", plural, name, namespace_of(pod)))
        for container in containers(pod):
            try:
                ContainerFiles(pod, container, volumes).run(container)
                lines, fine = self._output.printed_by(pod, container, volumes, when)
            except FilesError as error:
                lines, fine = [str(error)], False
            self._logs.add(uid, container["name"], lines, failed=not fine)
        states = [
            {**_state(each, {"running": {"startedAt": when}}), "ready": True, "started": True}
            for each in pod["spec"]["containers"]
        ]
        ready = [
            condition(kind, status=True, when=when)
            for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ]
        ended = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": when, "finishedAt": when}}
        before = [{**_state(each, ended), "ready": True} for each in pod["spec"].get("initContainers") or []]
        self._cluster.webhooks.services.started(pod)
        number = int(pod["metadata"]["resourceVersion"]) % 250 + 2
        status = {
            **pod["status"],
            "phase": "Running",
            "startTime": when,
            "conditions": ready,
            "containerStatuses": states,
            "podIP": f"192.168.0.{number}",
            "podIPs": [{"ip": f"192.168.0.{number}"}],
            "hostIP": "172.24.208.10",
            **({"initContainerStatuses": before} if before else {}),
        }
        self._cluster.set_status(pod, status, KUBELET)

    def _crashing(self, pod: Object, when: str) -> dict[str, tuple[int, list[str]]]:
        """Device plug-ins that do not find on their node what they need: container → how it ends, and its
        last words.
        """
        node = pod["spec"]["nodeName"]
        found: dict[str, tuple[int, list[str]]] = {}
        for container in pod["spec"]["containers"]:
            if is_nvidia(container):
                words = nvidia_words(pod, container, self._outside.gpus(node))
                found |= {container["name"]: (NVIDIA_CODE, words)} if words else {}
            elif words := driver_words(container, self._outside.gpus(node)):
                found[container["name"]] = (NVIDIA_CODE, words)
            elif advertised(container) and not registers(pod, container, self._outside.kubelet_folder(node)):
                found[container["name"]] = (CODE, last_words(when))
        return found

    def _crash(self, pod: Object, crashing: Mapping[str, tuple[int, list[str]]], when: str) -> None:
        """Its containers end as soon as they start, again and again; the kubelet waits longer each time."""
        uid = uid_of(pod)
        for name, (_, words) in crashing.items():
            self._logs.add(uid, name, words)
        back_off = (
            f"back-off 20s restarting failed container={next(iter(crashing))} pod={name_of(pod)}"
            f"_{namespace_of(pod)}({uid})"
        )
        states = []
        for each in pod["spec"]["containers"]:
            if each["name"] in crashing:
                code = crashing[each["name"]][0]
                end = {
                    "exitCode": code,
                    "reason": "Error",
                    "startedAt": when,
                    "finishedAt": when,
                    **self._last_words(uid, each, code),
                }
                state = _state(each, {"waiting": {"reason": "CrashLoopBackOff", "message": back_off}})
                states.append({**state, "ready": False, "restartCount": 2, "lastState": {"terminated": end}})
            else:
                states.append({**_state(each, {"running": {"startedAt": when}}), "ready": True})
        conditions = [
            condition(kind, status=kind in ("Initialized", "PodScheduled"), when=when)
            for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ]
        self._cluster.set_status(
            pod,
            {
                **pod["status"],
                "phase": "Running",
                "startTime": when,
                "conditions": conditions,
                "containerStatuses": states,
            },
            KUBELET,
        )
        self._cluster.event("BackOff", "Back-off restarting failed container", pod)

    def _ends(self, pod: Object) -> bool:
        return bool(dig(pod, "spec", "restartPolicy") != "Always")

    def _finish(self, item: Item, uid: str) -> None:
        pod = self._cluster.store.get(*item)
        if pod is None or uid_of(pod) != uid or dig(pod, "status", "phase") != "Running":
            return
        when = stamp(self._cluster.clock.now())
        works = [self._output.work(container) for container in pod["spec"]["containers"]]
        code = 1 if uid in self._logs.failed else max((work.exit_code for work in works if work), default=0)
        began = dig(pod, "status", "startTime")
        end = {
            "exitCode": code,
            "reason": "Error" if code else "Completed",
            "startedAt": began,
            "finishedAt": when,
        }
        states = [
            {
                **_state(each, {"terminated": {**end, **self._last_words(uid, each, code)}}),
                "ready": False,
                "started": False,
            }
            for each in pod["spec"]["containers"]
        ]
        conditions = [
            condition(
                each["type"],
                status=each["type"] in ("Initialized", "PodScheduled"),
                when=when,
                reason="" if code else "PodCompleted",
            )
            for each in pod["status"]["conditions"]
        ]
        phase = "Failed" if code else "Succeeded"
        self._cluster.set_status(
            pod,
            {**pod["status"], "phase": phase, "conditions": conditions, "containerStatuses": states},
            KUBELET,
        )

    def _last_words(self, uid: str, container: Object, code: int) -> Object:
        """The end of the log of a container that failed, where it asks for that."""
        log = (
            self._logs.end(uid, container["name"])
            if code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
            else ""
        )
        return {"message": log} if log else {}


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
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": _image_id(container["image"]),
        "restartCount": 0,
        "state": state,
    }


def _image_id(image: str) -> str:
    """The image by its digest. In the sandbox a tag always names the same image."""
    name, _, digest = image.partition("@")
    return f"{name}@{digest or 'sha256:' + hashlib.sha256(image.encode()).hexdigest()}"


def _backs_off(pod: Object) -> bool:
    return any(
        dig(each, "state", "waiting", "reason") == "CrashLoopBackOff"
        for each in dig(pod, "status", "containerStatuses", default=[])
    )
