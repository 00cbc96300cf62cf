"""The desired state of a workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from bfinfra.kinds.capabilities import SERVERS, allocatable, claim, namespace, path, space
from bfinfra.kinds.cluster.workload import asks, linted, manifests, plugin
from bfinfra.kinds.cluster.workload.request import ClientPackage
from bfinfra.kinds.cluster_locator import CLUSTERS, DnsLabel
from bfinfra.model import conflict, resource
from bfinfra.model.awaited import absent
from bfinfra.model.conflict import Conflict, Spot, Taken
from bfinfra.model.device_plugin import ALLOCATED, Version
from bfinfra.model.errors import FieldError
from bfinfra.model.names import DNS_LABEL, DNS_LABEL_RULE
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Key, Ref
from bfinfra.model.sources import LocalFile
from bfinfra.model.units import Bytes

HomeFolder = Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._/-]*$")]


OF_PLUGIN = ("device_plugin", "plugin_version", "client", "filters")  # fields that need by: plugin


class Spec(resource.Spec):
    """The desired state of one workload."""

    name_pattern = DNS_LABEL
    name_rule = DNS_LABEL_RULE

    awaits: ClassVar = {"manifest": "write it, or get it from whoever does"}

    cluster: Annotated[str, Ref(*CLUSTERS)]
    """Cluster, or supervisor namespace, that it runs in."""
    namespace: Annotated[DnsLabel, Ref("namespace", optional=True)] | None = None
    """Namespace; empty = default, or the supervisor namespace itself."""
    manifest: LocalFile
    """File with the Pod, Job and PersistentVolumeClaim manifests, as kubectl reads them."""
    gpus: Annotated[int, Field(ge=1)] | None = None
    """Remote GPUs for the first container of each Pod and Job."""
    fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of each GPU's memory."""
    gpu_memory: Bytes | None = None
    """Memory on each GPU, instead of a share of it; with by: flexdirect or plugin only."""
    by: Literal["env", "command", "flexdirect", "plugin"] = "env"
    """env: as NUM_GPUS and PARTIAL_GPU, for images that start Bitfusion themselves; command: `bitfusion run`
    before the command; flexdirect: `flexdirect run` before the command or args, with the node's
    /etc/bitfusionio mounted; plugin: the annotations and resources that the release of the cluster's
    Bitfusion device plug-in reads.
    """
    device_plugin: Annotated[str, Ref("bitfusion_device_plugin")] | None = None
    """With by: plugin: the device plug-in of this site that provides the GPUs."""
    plugin_version: Version | None = None
    """With by: plugin: its release, if the site doesn't install it."""
    client: ClientPackage | None = None
    """With by: plugin, from release 0.2 on: the client package for the image's system."""
    filters: tuple[Annotated[str, StringConstraints(pattern=r"^[a-z-]+\.[a-z-]+[^\s]+$")], ...] = ()
    """With by: plugin, from release 0.3 on: filters that select servers and GPUs: `server.has-rdma=true`."""
    token_secret: Annotated[str, Ref("token_secret")] | None = None
    """Token for images without one: it puts servers.conf and tls/ca.crt into /etc/bitfusion, and
    .bitfusion/client.yaml into the user's home.
    """
    home: HomeFolder | None = None
    """Home folder of the first container's user, for a token; empty = HOME in the manifest, or /root."""
    registry_credential: Annotated[str, Ref("registry_credential")] | None = None
    """Account to pull the image with."""
    run: Literal["once", "again"] = "once"
    """once: what ran and was cleaned up runs again only if the manifest changes; again: it runs again."""
    wait: Literal["ready", "finished"] = "ready"
    """What apply waits for."""

    def takes(self, name: str) -> Iterator[Taken]:
        """Its objects in their namespace."""
        space = self.namespace or "default"
        for manifest in self.documents():
            yield conflict.thing(
                "manifest", f"{manifests.identity(manifest)} in {space}", "cluster", self.cluster
            )

    @staticmethod
    def conflicts(mine: Specs, site: Specs) -> Iterator[Conflict]:
        """More GPUs than all servers of a token have together; requests that the cluster's device plug-in
        would refuse or ignore.
        """
        yield from linted.conflicts(mine, site)
        for key, spec in mine.items():
            yield from _by_plugin(key, spec, site)
            token = site.get(
                Key(
                    "bitfusion_token",
                    getattr(site.get(Key("token_secret", spec.token_secret or "")), "token", ""),
                )
            )
            servers = _group(getattr(token, "servers", ()), site)
            if spec.gpus and servers and spec.gpus > (there := sum(each.gpus for each in servers.values())):
                yield Conflict(
                    Spot(key, "gpus"),
                    f"{spec.gpus} GPUs are more than its token leads to: {there}",
                    tuple(Spot(server, "gpus") for server in servers),
                    next="lower gpus, or add a server",
                )

    @field_validator("manifest")
    @classmethod
    def _readable(cls, file: LocalFile) -> LocalFile:
        if absent(file, "") is None:
            manifests.read(file.path)
        return file

    @model_validator(mode="after")
    def _gpus(self) -> Spec:
        if self.home is not None and self.token_secret is None:
            raise FieldError("it goes with token_secret", "home")
        if self.by != "env" and self.gpus is None:
            raise FieldError(f"{self.by} needs gpus", "by")
        if self.gpu_memory is not None and (
            self.by not in ("flexdirect", "plugin") or self.fraction is not None
        ):
            raise FieldError("it goes with by: flexdirect or plugin, and without fraction", "gpu_memory")
        if self.by == "plugin":
            if (self.device_plugin is None) == (self.plugin_version is None):
                raise FieldError(
                    "plugin needs device_plugin, or plugin_version if the site doesn't install it", "by"
                )
            if self.token_secret is not None:
                raise FieldError("the device plug-in provides the token itself", "token_secret")
        elif given := [each for each in OF_PLUGIN if getattr(self, each)]:
            raise FieldError("it goes with by: plugin", given[0])
        if self.fraction is not None and self.gpus is None:
            raise FieldError("it needs gpus", "fraction")
        return self

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """Its claims, for other workloads."""
        here = space(self.namespace, self.cluster, site)
        return (claim(each, here, self.cluster, site) for each in asks.claims(self.documents()))

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """Its namespace, what its pods ask for, and what provides its remote GPUs."""
        here = space(self.namespace, self.cluster, site)
        found = {
            each: None
            for pod in manifests.pods(self.documents())
            for each in asks.of_pod(pod, here, self.cluster, site)
        }
        yield namespace(here, self.cluster, site)
        yield from found
        if self.by == "plugin":
            yield allocatable(ALLOCATED, self.cluster, site)
        if self.by == "flexdirect":
            yield from asks.flexdirect(self.cluster, site)
        elif (
            self.gpus is not None
            or self.token_secret is not None
            or allocatable(ALLOCATED, self.cluster, site) in found
        ):
            yield path(here, self.cluster, site)
            if self.token_secret is None:
                yield SERVERS

    def documents(self) -> tuple[manifests.Manifest, ...]:
        """The documents in its manifest; none if it can't be read any more, which other checks report."""
        try:
            return manifests.read(self.manifest.path)
        except ValueError:
            return ()


def _group(names: Iterable[str], site: Specs) -> Specs:
    """The servers of these names, and all of their groups."""
    servers = {key: spec for key, spec in site.items() if key.kind == "bitfusion_server"}
    firsts = {
        servers[key].first or name for name in names if (key := Key("bitfusion_server", name)) in servers
    }
    return {key: spec for key, spec in servers.items() if (spec.first or key.name) in firsts}


def _by_plugin(key: Key, spec: Spec, site: Specs) -> Iterator[Conflict]:
    other = Key("bitfusion_device_plugin", spec.device_plugin) if spec.device_plugin else None
    there = (
        plugin.installed(spec.plugin_version, site.get(other) if other else None)
        if spec.by == "plugin"
        else None
    )
    for field, what, remedy in plugin.objections(spec, there) if there else ():
        yield Conflict(Spot(key, field), what, (Spot(other),) if other else (), next=remedy)
