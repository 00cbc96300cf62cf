"""The appliances of a site: their OVAs, and how servers are made from them. A run reads the headers of each
one once, and all of it once before it is uploaded; both again if the file changes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.backends import ova
from bfinfra.backends.vcenter.vm import Appliance, Deployment, Hardware, Import
from bfinfra.kinds.vcenter.base.machine.run import run
from bfinfra.kinds.vcenter.base.machine.secrets import sealed
from bfinfra.kinds.vcenter.base.machine.state import identity
from bfinfra.kinds.vcenter.base.machine.steps import Delete, Discard, Move, OnMachine
from bfinfra.kinds.vcenter.bitfusion_server.spec import Ova, Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import IMPORTING, KIND, MARK, OVA, State, release
from bfinfra.kinds.vcenter.bitfusion_server.target import Deploy, Target, macs, surplus, there
from bfinfra.model import process
from bfinfra.model.awaited import absent
from bfinfra.model.errors import BfinfraError, Conflict, Missing, Problem, Refusal, RemoteError
from bfinfra.model.kind import Done, Report
from bfinfra.model.mark import Mark
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.backends.survey_cache import KnownObjects
    from bfinfra.backends.transport import Transport
    from bfinfra.backends.vcenter import VCenter

Version = tuple[str, int, object]
"""Path or URL, size, and a value that changes with the content."""


class Packages:
    """The OVAs that a run has read. Several threads use it; at worst two read the same OVA."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._sources: dict[Ova, ova.Source] = {}
        self._read: dict[Version, ova.Ova | Problem] = {}
        self._whole: dict[tuple[Version, str], Problem | None] = {}

    def look(self, of: Ova) -> ova.Ova | Problem:
        """The headers of an OVA, or why they can't be read; Absent if its file doesn't exist yet."""
        for field, file in (("ova.file", of.file), ("ova.trust.ca_file", of.trust.ca_file)):
            if file and (problem := absent(file, Spec.awaits[field])):
                return problem
        try:
            source = self._source(of)
        except OSError as error:
            return Problem(error.strerror or "it can't be read", next="correct the path, or download it")
        except (Refusal, RemoteError) as error:
            return error.problems[0]
        version = _version(source)
        if version not in self._read:
            try:
                self._read[version] = ova.read(of.file.path) if of.file else ova.read_from(source)
            except RemoteError as error:
                return error.problems[0]  # it may work the next time
            except BfinfraError as error:
                self._read[version] = error.problems[0]
            except ValueError as error:
                self._read[version] = Problem(str(error))
        return self._read[version]

    def damage(self, of: Ova, on_progress: Callable[[int], None] = lambda _: None) -> Problem | None:
        """Reads the whole OVA. Returns what is wrong with it, or None."""
        found = self.look(of)
        if isinstance(found, Problem):
            return found
        key = _version(found.source), of.sha256 or ""
        if key not in self._whole:
            try:
                ova.verify(found, on_progress, sha256=of.sha256 or "")
                self._whole[key] = None
            except Refusal as error:
                self._whole[key] = error.problems[0]
        return self._whole[key]

    def _source(self, of: Ova) -> ova.Source:
        """A file as it is now; a URL as it was at the first request of this run."""
        if of.file:
            return ova.LocalSource.of(of.file.path)
        if of not in self._sources:
            self._sources[of] = ova.RemoteSource.of(of.url or "", of.trust, self._transport)
        return self._sources[of]


def _version(source: ova.Source) -> Version:
    return source.where, source.size, source.state


def noted(spec: Spec, state: State | None) -> ova.Ova | None:
    """What an existing server tells of its appliance when the OVA is not there: the properties that the VM
    has, enough to compare it. None if the VM is not complete, or if the site changed in a way that only the
    OVA can answer. A VM without a mark can be adopted without its OVA.
    """
    applied = (state.mark.applied or {}) if state and state.mark else {}
    now = spec.applied()
    if state is None or state.importing:
        return None
    if state.mark is not None and applied.get("ova") != now["ova"]:
        return None
    if applied.get("properties", {}).keys() - now.get("properties", {}).keys():
        return None  # a property that leaves the site returns to its default, which only the OVA contains
    return ova.Ova(
        source=ova.LocalSource(Path(spec.ova.text), 0, 0),
        descriptor="",
        product=ova.Product(),
        eula=(),
        options=(),
        properties=tuple(_property(key, value) for key, value in state.machine.properties.items()),
        networks=(),
        disks=(),
        hardware=ova.Hardware(),
        files={},
        manifest={},
        members={},
    )


def _property(key: str, value: str) -> ova.Property:
    return ova.Property(
        key, "boolean" if value in ("True", "False") else "string", user_configurable=True, default=value
    )


class Runs:
    """Runs steps on one vCenter."""

    def __init__(
        self, vcenter: VCenter, site: Site, packages: Packages, known: KnownObjects[str, None]
    ) -> None:
        self._vcenter = vcenter
        self._site = site
        self._packages = packages
        self._known = known

    def deploy(self, step: Deploy, report: Report) -> None:
        """Verifies the OVA, then imports it. The import sets the mark, the hardware and the devices
        itself.
        """
        target, address = step.target, f"{KIND}/{step.name}"
        package = self._whole(target, report)
        notes = {MARK: step.mark, IMPORTING: process.me(), OVA: target.release}
        hardware = Hardware(
            cpus=target.cpus,
            memory=target.memory,
            reserve=True if target.attach else None,
            firmware="efi",
            instance_uuid=identity(self._site.name, address),
            extra=notes | dict(target.extra),
            attach=target.attach,
            add_nics=tuple(there(a.network) for a in target.adapters if not a.ovf),
            add_macs=tuple(a.mac for a in target.adapters if not a.ovf),
        )
        whole = sealed(hardware, target.properties, {}, address, self._site)
        wanted = Import(
            name=step.name,
            descriptor=package.descriptor,
            networks=dict.fromkeys((n.name for n in package.networks), there(target.adapters[0].network))
            | {a.ovf: there(a.network) for a in target.adapters if a.ovf},
            surplus=surplus(package, target.adapters),
            macs=macs(package, target.adapters),
            properties=whole.properties,
            folder=target.folder,
            pool=there(target.pool),
            host=target.host,
            datastore=target.datastore,
            hardware=replace(whole, properties={}),
            files=package.files,
            open=package.open,
            thin=target.thin,
        )
        self._known.forget(step.name)
        with self._there(step.name, target.places):
            self._made(wanted, package, target, report)

    def _made(self, wanted: Import, package: ova.Ova, target: Target, report: Report) -> None:
        if target.library is not None:
            moid, whole = self._from_library(target.library, wanted, package, report)
        else:
            moid = self._vcenter.imports.run(
                wanted, lambda done, total: report(Done("uploading", done, total))
            )
            whole = Hardware(extra={IMPORTING: ""})
        self._known.made(wanted.name, moid)
        with self._still(wanted.name, moid):
            self._vcenter.machines.reconfigure(
                moid,
                whole,
                "the note that the import is whole"
                if target.library is None
                else "the hardware of what was deployed",
            )

    def _from_library(
        self, library: tuple[str, str], wanted: Import, package: ova.Ova, report: Report
    ) -> tuple[str, Hardware]:
        """Stores the OVA in the library and deploys it. Returns the VM's id and the hardware to set next.

        The deployment can set the notes, but neither hardware nor the answers to properties: until those are
        set the VM counts as half-imported.
        """
        descriptor = next(iter(package.members))
        stored = Appliance(
            digest=release(package),
            title=f"{package.product.name} {package.product.full_version}".strip() or package.path.name,
            open=package.open,
            files={descriptor: package.members[descriptor].size, **package.files},
            digests=package.manifest,
        )
        item = self._vcenter.libraries.store(
            *library, stored, lambda done, total: report(Done("uploading to the library", done, total))
        )
        report(Done("deploying from the library", 0))
        unidentified = Mark(
            self._site.name, f"{KIND}/{wanted.name}"
        ).encode()  # without the instance UUID, which is set with the hardware
        moid = self._vcenter.libraries.deploy(
            item,
            Deployment(
                name=wanted.name,
                folder=wanted.folder,
                pool=wanted.pool,
                host=wanted.host,
                datastore=wanted.datastore,
                networks=wanted.networks,
                thin=wanted.thin,
                extra={**wanted.hardware.extra, MARK: unidentified},
            ),
        )
        nics = [nic for made in self._vcenter.machines.read([moid], []) for nic in made.nics]
        drop = tuple(nic.key for index, nic in enumerate(nics) if index in wanted.surplus)
        return moid, replace(
            wanted.hardware,
            extra={**wanted.hardware.extra, IMPORTING: ""},
            drop=drop,
            macs={nics[index].key: mac for index, mac in wanted.macs.items() if index < len(nics)},
            properties=wanted.properties,
        )

    def _whole(self, target: Target, report: Report) -> ova.Ova:
        """The OVA. Reads all of it again only if its file changed after the plan read it. Raises Conflict if
        it is another appliance now.
        """
        package = self._packages.look(target.ova)
        size = None if isinstance(package, Problem) else package.size
        if problem := self._packages.damage(target.ova, lambda done: report(Done("verifying", done, size))):
            raise BfinfraError(problem)
        assert isinstance(package, ova.Ova)
        if release(package) != target.release:
            raise Conflict(
                f"the OVA {target.ova.text} has changed", why="its content is not the one that was planned"
            )
        return package

    @contextlib.contextmanager
    def _there(self, name: str, places: frozenset[str]) -> Iterator[None]:
        """Raises Conflict if a place of a server is gone, so that the server is observed and decided
        again.
        """
        try:
            yield
        except Missing as error:
            if places <= self._vcenter.inventory.read().by_moid.keys():
                raise
            self._known.forget(name)
            raise Conflict(error.problems[0].what, server=error.server, why=error.problems[0].why) from None

    def small(self, step: OnMachine) -> None:
        """Runs any step but an import."""
        if isinstance(step, Discard):
            self._known.forget(step.name)
        with self._still(step.name, step.moid), self._arriving(step):
            run(self._vcenter.machines, step, KIND, self._site)
        if isinstance(step, Delete):
            self._known.ended(step.name, step.moid)

    def _arriving(self, step: OnMachine) -> contextlib.AbstractContextManager[None]:
        if not isinstance(step, Move):
            return contextlib.nullcontext()
        return self._there(step.name, frozenset({step.folder, there(step.pool)} - {""}))

    @contextlib.contextmanager
    def _still(self, name: str, moid: str) -> Iterator[None]:
        """Raises Conflict if a VM that this run made is gone because another run removed it as half made, so
        that the server is observed and decided again.
        """
        try:
            yield
        except Missing as error:
            if moid not in self._known.own or self._vcenter.machines.read([moid], []):
                raise
            self._known.forget(name)
            raise Conflict(
                error.problems[0].what,
                server=error.server,
                why="it was made just now, and somebody removed it",
            ) from None
