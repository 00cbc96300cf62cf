"""The desired state of the device plug-in of one cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import allocatable, image, namespace, space, token
from bfinfra.kinds.cluster.base.pods import check_toleration
from bfinfra.kinds.cluster_locator import WHOLE, DnsLabel
from bfinfra.model import resource
from bfinfra.model.choice import each_once
from bfinfra.model.device_plugin import (
    ALLOCATED,
    LIBRARIES,
    NEWEST,
    RELEASES,
    SYSTEM,
    Client,
    Release,
    Version,
)
from bfinfra.model.errors import FieldError, Problem
from bfinfra.model.names import DNS_LABEL, DNS_LABEL_RULE
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.units import Bytes

Namespace = Annotated[DnsLabel, Ref("namespace", optional=True)]
What = Literal["plugin", "webhook", "client"]
Image = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][\w./:@-]*$", max_length=500)]
Days = Annotated[int, Field(ge=1, le=36500)]
Port = Annotated[int, Field(ge=1, le=65535)]


class Images(Part):
    """The images: published, mirrored, or built by this site."""

    repository: Image = "docker.io/bitfusiondeviceplugin"
    """Registry and folder of all three."""
    tag: Annotated[str, StringConstraints(pattern=r"^[\w][\w.-]{0,127}$")] | None = None
    """Their tag; default the release. Nodes keep what they have pulled under a tag: give a new build a new
    tag.
    """
    plugin: Image | None = None
    """The full name of the device plug-in's image, if it differs."""
    webhook: Image | None = None
    """The same for the webhook's image."""
    client: Image | None = None
    """The same for the image with the client packages, which user pods pull."""
    built: dict[What, Annotated[str, Ref("container_image")]] = Field(default_factory=dict)
    """plugin, webhook or client → the container_image of this site. It is built and pushed before anything
    runs it.
    """

    @model_validator(mode="after")
    def _once(self) -> Images:
        if twice := [what for what in self.built if getattr(self, what)]:
            raise FieldError("give its name, or build it", twice[0])
        return self


class ClientPackage(Part):
    """A client package in the client image, which pods choose by annotations."""

    version: str
    """Version, as pods write it: "450"."""
    os: str
    """Operating system, as pods write it: ubuntu20."""
    folder: str
    """Its folder below /bitfusion in the image."""
    libraries: str = LIBRARIES
    """Folder of its libraries, below that."""


class Quota(Part):
    """How many GPUs the pods of a namespace may use together."""

    namespace: Namespace
    """The namespace."""
    gpus: Annotated[float, Field(gt=0, le=100_000, multiple_of=0.01)]
    """GPUs, with up to two decimals: 1.5."""

    @property
    def shares(self) -> int:
        """Hundredths of a GPU."""
        return round(self.gpus * 100)


class Toleration(Part):
    """A taint of nodes that the pods tolerate, as in a pod's spec."""

    key: Annotated[str, StringConstraints(max_length=316)] = ""
    """The taint's key; left out with operator: Exists, any."""
    operator: Literal["Exists", "Equal"] = "Equal"
    """Equal: the value must match, too."""
    value: str = ""
    """The taint's value."""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    """The taint's effect; left out, any."""

    @model_validator(mode="after")
    def _fits(self) -> Toleration:
        check_toleration(self.operator, self.key, self.value)
        return self


class Nodes(Part):
    """The nodes that pods run on."""

    selector: dict[str, str] = Field(default_factory=dict)
    """Labels that a node must have."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints of the nodes that the pods tolerate."""


class Certificates(Part):
    """The webhook's certificate, and the authority that signs it."""

    days: Days = 365
    """Days that the webhook's certificate is valid."""
    authority_days: Days = 3650
    """Days that its authority is valid."""
    renew_before: Days = 30
    """How many days before its end an apply replaces it."""

    @model_validator(mode="after")
    def _order(self) -> Certificates:
        if not self.renew_before < self.days <= self.authority_days:
            raise FieldError(
                "renew_before must be less than days, and days no more than authority_days",
                "days" if self.renew_before < self.days else "renew_before",
            )
        return self


class Spec(resource.Spec):
    """The desired state of the device plug-in of one cluster."""

    name_pattern = DNS_LABEL
    name_rule = DNS_LABEL_RULE

    cluster: Annotated[str, Ref(*WHOLE)]
    """Cluster whose pods get remote GPUs."""
    version: Version = NEWEST
    """Release of the plug-in."""
    namespace: Namespace = "bwki"
    """Namespace of the webhook, of this site or existing."""
    plugin_namespace: Namespace = "kube-system"
    """Namespace of the plug-in on the nodes. Its pods are privileged, which Pod Security must allow there."""
    token_secret: Annotated[str, Ref("token_secret")] | None = None
    """Token in kube-system, which the webhook copies to where pods need it; left out if it exists already."""
    images: Images = Field(default_factory=Images)
    """The images."""
    registry_credential: Annotated[str, Ref("registry_credential")] | None = None
    """Account to pull the images of plug-in and webhook with."""
    clients: tuple[ClientPackage, ...] = ()
    """Client packages in the client image; default those of the release."""
    total_gpu_memory: Bytes = 0
    """Memory of each GPU, of which requests for gpu-memory take a share; 0 = pods can't ask for memory."""
    shares: Annotated[int, Field(ge=1)] = 1000
    """Hundredths of a GPU that each node advertises. The request of one pod must fit on one node."""
    interval: Annotated[int, Field(ge=1)] = 10
    """Seconds between the plug-in's reports to the kubelet."""
    kubelet_folder: Annotated[str, StringConstraints(pattern=r"^/[^\s:]*$")] = "/var/lib/kubelet"
    """The kubelet's folder on the nodes."""
    plugin_nodes: Nodes = Field(default_factory=Nodes)
    """Nodes that the plug-in runs on; default all without taints. Pods with GPUs run only on these."""
    webhook_nodes: Nodes = Field(default_factory=Nodes)
    """Nodes that the webhook runs on. For the document's master node: selector
    {node-role.kubernetes.io/master: ""}, and a toleration of its taint.
    """
    replicas: Annotated[int, Field(ge=1, le=10)] = 1
    """Number of the webhook's pods."""
    port: Port = 443
    """Port of the webhook's Service."""
    failure_policy: Literal["Ignore", "Fail"] = "Ignore"
    """What happens to new pods while the webhook doesn't answer. Ignore: they are created without GPUs, and
    find no node if they ask for some; Fail: they are refused.
    """
    namespaces: tuple[Namespace, ...] = ()
    """Namespaces whose pods the webhook gets; default all but the system's and the plug-in's own."""
    quotas: tuple[Quota, ...] = ()
    """How many GPUs namespaces may use."""
    certificates: Certificates = Field(default_factory=Certificates)
    """The webhook's certificate and its authority."""

    @model_validator(mode="after")
    def _fits(self) -> Spec:
        if self.clients and not self.release.clients:
            raise FieldError(f"release {self.version} doesn't let pods choose a client", "clients")
        each_once("quotas", [quota.namespace for quota in self.quotas])
        return self

    @property
    def release(self) -> Release:
        """The differences of its version from others."""
        return RELEASES[self.version]

    @property
    def packages(self) -> tuple[Client, ...]:
        """The client packages that pods may choose."""
        own = tuple(Client(each.version, each.os, each.folder, each.libraries) for each in self.clients)
        return own or self.release.clients

    def image(self, what: What) -> str:
        """The name of an image that the site doesn't build."""
        names = {
            "plugin": "bitfusion-device-plugin",
            "webhook": "bitfusion-webhook",
            "client": "bitfusion-client",
        }
        return (
            getattr(self.images, what)
            or f"{self.images.repository}/{names[what]}:{self.images.tag or self.version}"
        )

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """Remote GPUs for pods."""
        yield allocatable(ALLOCATED, self.cluster, site)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """Its namespaces, its images, and the token that its webhook copies."""
        written = (
            self.namespace,
            self.plugin_namespace,
            *self.namespaces,
            *(quota.namespace for quota in self.quotas),
        )
        yield from (
            namespace(space(each, self.cluster, site), self.cluster, site) for each in dict.fromkeys(written)
        )
        yield from (image(self.image(what)) for what in get_args(What) if what not in self.images.built)
        if self.token_secret is None:
            yield token(self.release.form, "kube-system", self.cluster, site)

    def warnings(self) -> Iterable[tuple[str, Problem]]:
        """A webhook with one pod that can block all pods; namespaces that it never gets."""
        if self.failure_policy == "Fail" and self.replicas == 1:
            yield (
                "failure_policy",
                Problem(
                    "while the webhook's only pod moves to another node, no pod can start",
                    next="write replicas: 2, or failure_policy: Ignore",
                ),
            )
        for number, each in enumerate(self.namespaces):
            if each in (*SYSTEM, self.namespace, self.plugin_namespace):
                yield (
                    f"namespaces.{number}",
                    Problem(
                        f"pods in {each} are not shown to the webhook",
                        why="pods of the system's namespaces and of the plug-in's own never are",
                        next="remove it from namespaces",
                    ),
                )
