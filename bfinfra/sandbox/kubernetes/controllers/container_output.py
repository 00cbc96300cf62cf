"""The output of pods' containers."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from bfinfra.sandbox.kubernetes import nvidia_smi
from bfinfra.sandbox.kubernetes.bitfusion_log import Ask, asked, opened, places, printed
from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.container_files import ContainerFiles, Volume, home_of
from bfinfra.sandbox.kubernetes.controllers.pod_claims import SLICES, devices
from bfinfra.sandbox.kubernetes.flexdirect_log import called, log_of
from bfinfra.sandbox.kubernetes.mpi_log import benchmark, unlicensed, workers_of
from bfinfra.sandbox.kubernetes.nvidia import RESOURCE
from bfinfra.sandbox.kubernetes.nvidia_dra import GPU
from bfinfra.sandbox.kubernetes.objects import Object, dig, namespace_of
from bfinfra.sandbox.kubernetes.outside import Outside, Work
from bfinfra.sandbox.kubernetes.pods import containers
from bfinfra.sandbox.kubernetes.reachability import reported, tried
from bfinfra.sandbox.kubernetes.store import Key

PODS: Key = ("", "pods")
POLICIES: Key = ("networking.k8s.io", "networkpolicies")


class ContainerOutput:
    """Of one cluster."""

    def __init__(self, cluster: Cluster, outside: Outside) -> None:
        self._cluster, self._outside = cluster, outside

    def work(self, container: Object) -> Work | None:
        """Return the behaviour that the world gives to a container of its image."""
        return next(
            (work for image, work in self._outside.images.items() if fnmatchcase(container["image"], image)),
            None,
        )

    def printed_by(
        self, pod: Object, container: Object, volumes: Mapping[str, Volume], when: str
    ) -> tuple[list[str], bool]:
        """The lines that a container prints, and whether it ends well."""
        work = self.work(container)
        if work and work.output is not None:
            return work.output.splitlines(), True
        if ways := tried(container):
            return reported(
                ways, pod, self._cluster.store.all(POLICIES, namespace_of(pod)), self._outside.serves
            )
        if (options := nvidia_smi.asked(container)) is not None:
            gpus = self._outside.gpus(pod["spec"]["nodeName"])
            given = [*nvidia_smi.by_plugin(pod, container, gpus), *self._by_claims(pod, container)]
            return nvidia_smi.printed(options, given, gpus, self._cluster.clock.now())
        if call := called(container):
            return log_of(call, pod, container, self._outside.host(pod["spec"]["nodeName"]), when)
        environment = self._environment(pod, container)
        ask = asked(container, environment)
        if ask is None:
            return self._training(pod, container)
        return self._remote(ask, ContainerFiles(pod, container, volumes), environment, when)

    def _by_claims(self, pod: Object, container: Object) -> list[nvidia_smi.Given]:
        """The GPUs, and parts of them, that a container has by its claims."""
        slices = self._cluster.store.all(SLICES)
        return [
            nvidia_smi.Given(
                *(
                    str(dig(device, "attributes", name, "string", default=""))
                    for name in ("uuid", "parentUUID", "profile")
                )
            )
            for each in devices(self._cluster, pod, container)
            for one in slices
            if dig(one, "spec", "driver") == each["driver"] == GPU
            and dig(one, "spec", "pool", "name") == each["pool"]
            for device in dig(one, "spec", "devices", default=[])
            if device["name"] == each["device"]
        ]

    def _remote(
        self, ask: Ask, files: ContainerFiles, environment: Mapping[str, str], when: str
    ) -> tuple[list[str], bool]:
        """A Bitfusion client's, with the access and servers that are mounted, or its image's own."""
        home = home_of(files, environment)
        if not any(files.mounted(path) for path in places(home)):  # its image contains its own
            up = dict(self._outside.gpu_servers())
            return printed(ask, list(up) or ["127.0.0.1:56001"], up, when)
        servers, lines = opened(files, home, when)
        if not servers:
            return lines, False
        more, fine = printed(
            ask,
            servers,
            {each: server for each in servers if (server := self._outside.gpu_server(each))},
            when,
        )
        return [*more[:1], *lines, *more[1:]], fine

    def _training(self, pod: Object, container: Object) -> tuple[list[str], bool]:
        """A launcher's, whose workers with GPUs must all have licensed ones."""
        workers = workers_of(pod, self._cluster.store.all(PODS, namespace_of(pod)))
        with_gpus = [
            each
            for each in workers
            if any(RESOURCE in (dig(c, "resources", "limits") or {}) for c in containers(each))
        ]
        bad = next(
            (
                each
                for each in with_gpus
                if not self._outside.gpus(dig(each, "spec", "nodeName", default="")).licensed
            ),
            None,
        )
        return (unlicensed(bad), False) if bad else (benchmark(container), True)

    def _environment(self, pod: Object, container: Object) -> Mapping[str, str]:
        found = {}
        for each in container.get("env") or []:
            found[each["name"]] = str(each.get("value", ""))
            reference = dig(each, "valueFrom", "configMapKeyRef")
            if reference:
                values = self._cluster.get("", "configmaps", reference["name"], namespace_of(pod)) or {}
                found[each["name"]] = str(dig(values, "data", reference["key"], default=""))
        return found
