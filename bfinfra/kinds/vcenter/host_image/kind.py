"""The kind: notes on clusters, the image and what hosts run; one request, or one task, for each step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bfinfra.backends.vcenter.esxi import lost_host
from bfinfra.backends.vcenter.vm import CONNECTED
from bfinfra.kinds.attributes import ATTRIBUTES
from bfinfra.kinds.vcenter.base import host_setting
from bfinfra.kinds.vcenter.base.begun import Begun, Wait, held
from bfinfra.kinds.vcenter.host_image.branches import newer_guests
from bfinfra.kinds.vcenter.host_image.decide import decide, owed
from bfinfra.kinds.vcenter.host_image.spec import Spec
from bfinfra.kinds.vcenter.host_image.steps import (
    BEGUN,
    Commit,
    Drop,
    Forget,
    Import,
    Leave,
    OnHost,
    PutBack,
    Remediate,
    SetImage,
    State,
)
from bfinfra.model.conflict import Conflict
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.errors import Rejected
from bfinfra.model.kind import Observation, Report
from bfinfra.model.order import Specs
from bfinfra.model.readiness import Readiness, Ready
from bfinfra.model.refs import Key
from bfinfra.model.rights import ROOT, Entity, PrivilegePlaces, Right, Use, holds, path_in
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter
    from bfinfra.backends.vcenter.esxi_settings import Noted
    from bfinfra.backends.vcenter.host_images import HostImages
    from bfinfra.backends.vcenter.places import Host


class HostImageKind(host_setting.Settings[Spec, State]):
    """Components of the image of a cluster's hosts."""

    document = Document.PVRDMA
    deadline = 4 * 3600
    step_types = (Import, SetImage, PutBack, Wait, Leave, Remediate, Commit, Drop, Forget)  # type: ignore[assignment]  # more than a plain setting has
    resource_privileges = (
        holds("clusters", "VcIntegrity.lifecycleSoftwareSpecification.Read"),
        holds("depots", "VcIntegrity.lifecycleSettings.Read"),
    )
    name = "host_image"
    prefix = ATTRIBUTES["host_image"]
    undescribed = "an image doesn't tell which of its components were added for GPUs"

    def __init__(self, vcenter: VCenter, host_images: HostImages, site: Site) -> None:
        super().__init__(vcenter, site)
        self._images = host_images

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads the notes; then, if a component is wanted or noted, images, scans and depots."""
        found = super().observe(wanted, {}, include_unlisted=include_unlisted)
        moids = {each.moid for state in found.states.values() for each in state.settings}
        if not moids:
            return found
        inventory, depots = self._vcenter.inventory.read(), self._images.depots()
        by_cluster = {moid: self._images.hosts(moid) for moid in moids}
        begun = self._begun()
        self._vcenter.leases.read(self._vcenter.defined)

        def on_host(host: Host) -> OnHost:
            image = by_cluster[host.cluster].get(host.moid)
            about = (image.components, image.status, image.why) if image else ()
            return replace(
                OnHost(host.name, host.moid, host.cluster, *about),
                maintenance=host.maintenance,
                begun=begun.get(host.moid),
                lost=lost_host(host.name, CONNECTED if host.connected else "disconnected"),
            )

        def whole(state: State) -> State:
            clusters = {each.moid for each in state.settings}
            hosts = (each for each in inventory.hosts if each.cluster in clusters)
            rows = (on_host(each) for each in sorted(hosts, key=lambda each: each.name))
            imaged = all(each.now is not None for each in state.settings)
            lease = self._vcenter.leases.other(state.settings[0].moid)
            return replace(state, hosts=tuple(rows), depots=depots, imaged=imaged, lease=lease)

        return replace(found, states={name: whole(state) for name, state in found.states.items()})

    @classmethod
    def steps(cls, name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """See `decide`."""
        return decide(spec, state, context)

    @classmethod
    def own_rights(cls, name: str, spec: Spec) -> Iterable[tuple[Use, Right]]:
        """Who destroys it reads images and depots as well."""
        return [(Use.DESTROY, right) for right in cls.resource_privileges]

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: object) -> Iterator[Conflict]:
        """Guest drivers that are newer than the hosts'."""
        yield from newer_guests(wanted)

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The cluster, and the root, where custom attributes are defined and depots are."""
        cluster = Entity(path_in(datacenter, "host", spec.cluster), "ClusterComputeResource")
        remediates = spec.remediate == "if_needed"
        return {
            "clusters": (cluster,),
            "remediated": (cluster._replace(propagate=True),) if remediates else (),
            "definitions": (ROOT,),
            "leases": (ROOT,) if remediates else (),
            "depots": (ROOT,),
        }

    def noted(self, *, everyone: bool, texts: Iterable[str] = ()) -> Mapping[str, Noted]:
        """The clusters by what the site calls them, each with its notes."""
        return self._vcenter.cluster_notes.noted(self.prefix, everyone=everyone, texts=texts)

    def note(self, moid: str, attribute: str, text: str) -> None:
        """Writes a note on a cluster."""
        self._vcenter.cluster_notes.set(moid, attribute, text)

    def forget(self, moid: str, attribute: str) -> None:
        """Removes a note from a cluster, with the last one its definition."""
        self._vcenter.cluster_notes.drop(moid, attribute)

    def values(self, moids: Iterable[str], keys: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """The components of images by cluster id; "" for one that the image doesn't have. Nothing of a
        cluster without an image.
        """
        empty = dict.fromkeys(keys, "")
        images = {moid: self._images.image(moid) for moid in dict.fromkeys(moids)}
        return {moid: {**empty, **found} for moid, found in images.items() if found is not None}

    def write(self, moid: str, key: str, value: str) -> None:
        """Never called: several components are set at once."""
        raise AssertionError(key)

    def run(self, step: Step, report: Report) -> None:
        """Runs one step. A note is written before a depot comes or the image changes, and removed at the
        end. `Wait` does nothing: ready() reports when the other run has ended.
        """
        match step:
            case Import():
                self._write_notes(step.moid, step.notes)
                self._images.import_depot(step.url, step.description)
            case SetImage():
                self._write_notes(step.moid, step.notes)
                why = f"bfinfra: set {step.what}"
                self._images.commit(step.moid, step.components, (), why)
            case PutBack():
                kept = {key: version for key, version in step.components.items() if version}
                gone = [key for key, version in step.components.items() if not version]
                self._images.commit(step.moid, kept, gone, f"bfinfra: take {step.what} out")
            case Leave():
                self._leave(step)
            case Remediate():
                self._remediate(step)
            case Commit():
                self._write_notes(step.moid, step.notes)
            case Drop():
                self._images.drop_depot(step.identity)
            case Forget():
                self._images.discard(step.moid, step.components)
                for each in step.components:
                    self.forget(step.moid, self.prefix + each)

    def _write_notes(self, moid: str, notes: Mapping[str, str]) -> None:
        for component, text in notes.items():
            self.note(moid, self.prefix + component, text)

    def ready(self, spec: Spec | None, state: State) -> Readiness:
        """Waits while another run has the cluster's lease, and hosts have to go through maintenance mode."""
        if state.lease and state.settings and owed(spec, state):
            return held(state.lease, state.settings[0].host)
        return Readiness(Ready.READY, note=self._vcenter.leases.warning())

    def _begun(self) -> Mapping[str, Begun]:
        """What the site began on hosts, by their ids."""
        noted = self._vcenter.host_settings.noted(BEGUN, everyone=False).values()
        return {each.moid: found for each in noted if (found := Begun.decode(each.notes.get(BEGUN, "")))}

    def _leave(self, step: Leave) -> None:
        """Ends maintenance mode, then says that it is over."""
        hosts = self._vcenter.hosts
        with self._vcenter.leases.held(step.moid, step.host_moid):
            if not step.stay:
                hosts.exit_maintenance(step.host_moid)
            hosts.drop_attribute(step.host_moid, BEGUN)

    def _remediate(self, step: Remediate) -> None:
        """Checks the hosts first: a host that can't enter maintenance mode is named with its reasons, and
        none is touched. What begins is noted, and stays noted where vCenter fails.
        """
        hosts = self._vcenter.hosts
        with self._vcenter.leases.held(step.moid, step.hosts):
            self._check(step)
            for moid, text in zip(step.moids, step.begun, strict=True):
                hosts.set_attribute(moid, BEGUN, text)
            self._images.apply(step.moid, step.moids, eula=True)
            for moid in step.moids:
                hosts.drop_attribute(moid, BEGUN)

    def _check(self, step: Remediate) -> None:
        issues = self._images.check(step.moid, step.moids)
        if issues:
            raise Rejected(
                f"{step.hosts} can't be remediated",
                server=self._vcenter.server,
                why="; ".join(issues),
                next="move or stop what prevents it, then run this again",
            )
