"""Container logs: kept by pod and container, read whole, from the end, or followed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from bfinfra.sandbox.handler import Request, Response
from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.errors import bad_request
from bfinfra.sandbox.kubernetes.identity import User
from bfinfra.sandbox.kubernetes.objects import Object, dig, uid_of
from bfinfra.sandbox.kubernetes.pods import containers
from bfinfra.sandbox.kubernetes.target import Target
from bfinfra.sandbox.kubernetes.writes import Writer

POLL = 1.0  # seconds between looks of a follower that nothing woke
Line = tuple[float, str]


class Logs:
    """The lines that containers printed, with their times."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lines: dict[tuple[str, str], list[Line]] = {}
        self.failed: set[str] = set()  # uids of pods whose output shows that they failed
        cluster.endpoints[("", "pods", "log")] = self.serve

    def add(self, uid: str, container: str, lines: list[str], *, failed: bool = False) -> None:
        """Add lines that a container prints now; `failed`: they show that it can't continue."""
        self.failed |= {uid} if failed else set()
        now = self._cluster.clock.now()
        self._lines.setdefault((uid, container), []).extend((now, line) for line in lines)

    def end(self, uid: str, container: str) -> str:
        """The last 80 lines, at most 2048 bytes: what a kubelet takes for the last words of a container that
        failed.
        """
        lines = [line for _, line in self._lines.get((uid, container), [])[-80:]]
        return "".join(f"{line}\n" for line in lines)[-2048:]

    def sweep(self) -> None:
        """Forget the output of pods that no longer exist."""
        alive = {uid_of(pod) for pod in self._cluster.all("", "pods")}
        self._lines = {key: lines for key, lines in self._lines.items() if key[0] in alive}
        self.failed &= alive

    def save(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {"lines": [[*key, lines] for key, lines in self._lines.items()], "failed": sorted(self.failed)}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take over what `save` gave."""
        self._lines = {
            (uid, container): [(when, line) for when, line in lines]
            for uid, container, lines in data["lines"]
        }
        self.failed = set(data["failed"])

    def serve(self, target: Target, request: Request, _: User) -> Response:
        """GET …/pods/NAME/log. Refused (400) while the container has not started."""
        pod = Writer(self._cluster).found(target)
        container = _container(pod, request.params.get("container", ""))
        waiting = self._waiting(pod, container)
        if waiting:
            raise bad_request(
                f'container "{container}" in pod "{target.name}" is waiting to start: {waiting}'
            )
        kind = {"content-type": "text/plain"}
        key = (uid_of(pod), container)
        if request.params.get("follow", "") in ("1", "true"):
            return Response(200, self._followed(target, key, request.params), kind)
        lines = self._lines.get(key, [])
        return Response(
            200, "".join(_shown(line, request.params) for line in _tail(lines, request.params)).encode(), kind
        )

    def _waiting(self, pod: Object, container: str) -> str:
        states = dig(pod, "status", "containerStatuses", default=[])
        state = next((each.get("state", {}) for each in states if each["name"] == container), None)
        if state is None:
            return "ContainerCreating" if dig(pod, "spec", "nodeName") else "PodScheduled"
        ended = any(each["name"] == container and dig(each, "lastState", "terminated") for each in states)
        return "" if ended else str(dig(state, "waiting", "reason", default=""))

    def _followed(self, target: Target, key: tuple[str, str], params: dict[str, str]) -> Iterator[bytes]:
        store, sent = self._cluster.store, 0
        first = _tail(self._lines.get(key, []), params)
        sent = len(self._lines.get(key, []))
        yield from (_shown(line, params).encode() for line in first)
        while not store.closed:
            revision = store.revision
            pod = store.get(("", "pods"), target.namespace, target.name)
            lines = self._lines.get(key, [])
            yield from (_shown(line, params).encode() for line in lines[sent:])
            sent = len(lines)
            if pod is None or uid_of(pod) != key[0] or dig(pod, "status", "phase") in ("Succeeded", "Failed"):
                return
            store.wait(revision, POLL)


def _container(pod: Object, wanted: str) -> str:
    names = [each["name"] for each in containers(pod)]
    if wanted and wanted not in names:
        raise bad_request(f"container {wanted} is not valid for pod {pod['metadata']['name']}")
    main = [each["name"] for each in pod["spec"]["containers"]]
    if not wanted and len(main) > 1:
        raise bad_request(
            f"a container name must be specified for pod {pod['metadata']['name']}, choose one of: "
            f"[{' '.join(main)}]"
        )
    return wanted or main[0]


def _tail(lines: list[Line], params: dict[str, str]) -> list[Line]:
    if params.get("sinceSeconds", "").isdigit():
        lines = [line for line in lines if line[0] >= time.time() - int(params["sinceSeconds"])]
    count = params.get("tailLines", "")
    return lines[max(0, len(lines) - int(count)) :] if count.isdigit() else lines


def _shown(line: Line, params: dict[str, str]) -> str:
    if params.get("timestamps") in ("1", "true"):
        return (
            f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(line[0]))}.{int(line[0] % 1 * 1e9):09d}Z "
            f"{line[1]}\n"
        )
    return f"{line[1]}\n"
