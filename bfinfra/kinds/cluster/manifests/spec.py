"""The desired state of Kubernetes objects of any type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue, StringConstraints, model_validator

from bfinfra.backends.helm import OciChart
from bfinfra.kinds.capabilities import namespace, space
from bfinfra.kinds.cluster_locator import WHOLE, DnsLabel
from bfinfra.model import resource
from bfinfra.model.choice import one_of
from bfinfra.model.errors import FieldError
from bfinfra.model.names import DNS_LABEL, DNS_LABEL_RULE
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile
from bfinfra.model.trust import Trust

Oci = Annotated[
    str, StringConstraints(pattern=r"^oci://[A-Za-z0-9.-]+(:\d+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$")
]
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Hook = Annotated[str, StringConstraints(pattern=r"^[A-Za-z]+/[^\s/]+$")]


class Chart(Part):
    """A Helm chart: an archive on this machine, or in an OCI registry."""

    file: LocalFile | None = None
    """Its archive on this machine, as `helm pull` or `helm package` writes it."""
    oci: Oci | None = None
    """Its address in a registry, such as oci://registry.example.com/charts/kueue. bfinfra pulls it once, and
    keeps it in its folder on this machine.
    """
    version: Annotated[str, StringConstraints(min_length=1)] | None = None
    """Its version; another one in the archive is refused."""
    digest: Digest
    """Of a file the SHA-256 of the archive, as `sha256sum` prints it; in a registry that of the chart, as
    `helm pull` and `helm push` print it: sha256:…
    """
    username: Annotated[str | None, Field(exclude=True)] = None
    """Name of the account that may pull it from the registry; empty = anybody may."""
    password: Annotated[Secret | None, Field(exclude=True)] = None
    """Reference to its password or token."""
    trust: Annotated[Trust, Field(exclude=True)] = Field(default_factory=Trust)
    """The certificate that the registry must show; by default one that this system trusts."""

    @model_validator(mode="after")
    def _one(self) -> Chart:
        one_of(file=self.file, oci=self.oci)
        for field in ("username", "password"):
            if self.file is not None and getattr(self, field) is not None:
                raise FieldError("it goes with oci", field)
        if self.file is not None and self.trust != Trust():
            raise FieldError("it goes with oci", "trust")
        if (self.username is None) != (self.password is None):
            raise FieldError("write username and password, or neither", "username")
        return self

    @property
    def address(self) -> OciChart | None:
        """Where a registry has it."""
        if self.oci is None:
            return None
        registry, _, path = self.oci.removeprefix("oci://").partition("/")
        return OciChart(registry, path, self.digest, self.username or "", self.password, self.trust)


class Spec(resource.Spec):
    """The desired state of one group of objects: either `files` or `chart`."""

    name_pattern = DNS_LABEL
    name_rule = DNS_LABEL_RULE
    awaits: ClassVar = {
        "files": "write it, or get it from whoever does",
        "values_files": "write it, or get it from whoever does",
        "chart.file": "get it with helm pull",
    }
    unnoted = frozenset({"files", "chart.file", "values_files"})

    cluster: Annotated[str, Ref(*WHOLE)]
    """Cluster of the objects."""
    namespace: Annotated[DnsLabel, Ref("namespace", optional=True)] = "default"
    """Namespace, of this site or existing, for objects that name none, and for the record of their types."""
    files: tuple[LocalFile, ...] = ()
    """Files with manifests, and folders of such files. A rendered chart is one, too."""
    chart: Chart | None = None
    """Helm chart, which helm on this machine renders; bfinfra applies the objects itself."""
    release: DnsLabel | None = None
    """Name of the release in the chart's templates; empty = the resource's name."""
    values: dict[str, JsonValue] = Field(default_factory=dict)
    """The chart's values, above those in files. Scalars have the types of the chart's defaults. No secrets:
    they would be readable in the record of what was applied.
    """
    values_files: tuple[LocalFile, ...] = ()
    """Files with the chart's values, the later above the earlier, as `helm --values` reads them."""
    skip_hooks: tuple[Hook, ...] = ()
    """Hooks of the chart that are left out, as Job/name. A chart with hooks is refused until each is named
    here or in `run_hooks`. Tests need not be named.
    """
    run_hooks: tuple[Hook, ...] = ()
    """Hooks of the chart that run before or after the objects are applied, as Job/name: on the first apply
    those of installs, on each later change of the rendering those of upgrades. Those of removals run when the
    objects are deleted, as the last apply noted them.
    """
    wait: Literal["ready", "served"] = "ready"
    """What apply waits for: ready, until everything is ready; served, until the cluster serves the types that
    it defines.
    """

    @model_validator(mode="after")
    def _one_source(self) -> Spec:
        if self.files and self.chart is not None:
            raise FieldError("write either files or chart", "chart")
        if not self.files and self.chart is None:
            raise ValueError("write either files or chart")
        for field in ("values", "values_files", "release"):
            if self.chart is None and getattr(self, field):
                raise FieldError("it goes with chart", field)
        if both := {*self.skip_hooks} & {*self.run_hooks}:
            raise FieldError(f"skip_hooks names {min(both)}, too", "run_hooks")
        return self

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """Its namespace."""
        yield namespace(space(self.namespace, self.cluster, site), self.cluster, site)
