"""A content library: the Kubernetes releases of Tanzu, images of VMs, appliances. (The solution: VMware
Kubernetes platforms on a GPU cluster.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import StringConstraints

from bfinfra.backends.vcenter.content import OURS, ContentLibraries, Library
from bfinfra.backends.vcenter.content import Subscription as Follows
from bfinfra.backends.vcenter.places import Thing, called, lookup, only
from bfinfra.kinds.capabilities import library
from bfinfra.kinds.named import the
from bfinfra.model import compare, kind, resource
from bfinfra.model.compare import Change
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Observation, Report
from bfinfra.model.mark import Mark, above
from bfinfra.model.names import TITLE, TITLE_RULE
from bfinfra.model.order import Capability, Specs
from bfinfra.model.readiness import READY, Readiness, waiting
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.resource import Part
from bfinfra.model.rights import READ, ROOT, VCENTER, Entity, PrivilegePlaces, Use, holds, path_in
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter

RELEASES = "https://wp-content.vmware.com/v2/latest/lib.json"
THUMBPRINT = r"^(([0-9A-Fa-f]{2}:){19}|([0-9A-Fa-f]{2}:){31})[0-9A-Fa-f]{2}$"
"""SHA-1 or SHA-256, in bytes with colons between them."""
STORE = holds("datastore", "Datastore.AllocateSpace")


class Subscription(Part):
    """Another library that this one follows; by default VMware's library of Kubernetes releases."""

    url: Annotated[str, StringConstraints(pattern=r"^https?://\S+$")] = RELEASES
    """URL of the publisher's lib.json. A mirror has its own."""
    on_demand: bool = True
    """Download files when they are first used; false downloads all at once."""
    automatic_sync: bool = True
    """Let vCenter look for new items by itself."""
    thumbprint: Annotated[str, StringConstraints(pattern=THUMBPRINT)] | None = None
    """SHA-1 of the publisher's certificate, as AB:CD:…, if vCenter can't check it otherwise; from vSphere 9.1
    its SHA-256.
    """


class Spec(resource.Spec):
    """The desired state of one library."""

    name_pattern = TITLE
    name_rule = TITLE_RULE

    datastore: str
    """The datastore that holds it."""
    subscription: Subscription | None = None
    """Another library that it follows. Without one it is local, filled by hand or by bitfusion_server."""
    description: str = ""
    """Free text. bfinfra writes its mark in a last line below it."""

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The library, by its name."""
        yield library(name)


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The library as vCenter reports it; `library.datastore` is a name if the datastore is known.

    `twins`: the ids of others that may be meant as well.
    """

    library: Library
    twins: tuple[str, ...] = ()


@dataclass(frozen=True)
class ContentLibraryFacts:
    """All datastores, with their paths where a site needs them."""

    datastores: tuple[Thing, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Create(Step):
    """create content library {name}"""

    rights = (
        holds("local", "ContentLibrary.CreateLocalLibrary"),
        holds("subscribed", "ContentLibrary.CreateSubscribedLibrary"),
        STORE,
    )
    name: str
    library: Library


@dataclass(frozen=True, kw_only=True)
class Update(Step):
    """update content library {name}"""

    rights = (
        holds("local", "ContentLibrary.UpdateLocalLibrary"),
        holds("subscribed", "ContentLibrary.UpdateSubscribedLibrary"),
    )
    name: str
    library: Library


@dataclass(frozen=True, kw_only=True)
class Delete(Step):
    """delete content library {name} and all that is in it"""

    destructive = True
    rights = (
        holds("local", "ContentLibrary.DeleteLocalLibrary"),
        holds("subscribed", "ContentLibrary.DeleteSubscribedLibrary"),
    )
    uses = (Use.DESTROY,)
    name: str
    id: str
    subscribed: bool


class ContentLibrary(kind.Kind[Spec, State]):
    """A content library, local or subscribed."""

    document = Document.CONSOLIDATED
    deadline = 1800
    step_types = (Create, Update, Delete)
    survey_privileges = (holds(VCENTER, *READ),)

    def __init__(self, vcenter: VCenter) -> None:
        self._vcenter = vcenter
        self._libraries = ContentLibraries(vcenter.rest)
        self._stores: tuple[Thing, ...] = ()

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads the list of libraries, then each library."""
        if include_unlisted:
            self._stores = self._datastores(each.datastore for each in wanted.values() if each)
        names, states = called(self._stores), {}
        for found, twins in _one_of_each_name(self._libraries.list()):
            mark = _mark(found)
            if found.name in wanted or (include_unlisted and mark):
                spec = wanted.get(found.name)
                own = only(lookup(self._stores, spec.datastore)) if spec else None
                store = names.get(found.datastore) or found.datastore
                if spec and own and own.moid == found.datastore:
                    store = spec.datastore
                state = State(mark=mark, library=replace(found, datastore=store), twins=twins)
                states[found.name] = (
                    self._with_contents(state)
                    if include_unlisted and wanted.get(found.name) is None
                    else state
                )
        return Observation(states, ContentLibraryFacts(self._stores))

    def _datastores(self, texts: Iterable[str], *, all_of: bool = False) -> tuple[Thing, ...]:
        """All datastores if a library is wanted, or if `all_of` them are; with paths where a name is not
        enough. `texts`: what the site calls them.
        """
        wanted = [*texts]
        if not wanted and not all_of:
            return ()
        found = self._libraries.datastores()
        if len({*found.values()}) < len(found) or any("/" in each for each in wanted):
            return self._vcenter.inventory.read().datastores
        return tuple(Thing(moid=moid, name=name) for moid, name in found.items())

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every library whose items are on a datastore."""
        stores = called(self._datastores((), all_of=True))
        for found in self._libraries.list():
            library = replace(found, datastore=stores.get(found.datastore, ""))
            yield Description(
                library.name,
                {"datastore": library.datastore, **_view(library)},
                State(mark=_mark(found), library=library),
                left_out="" if library.datastore else "its items are not on a datastore",
            )

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Creates, changes or deletes it, in one step."""
        if state is not None and state.twins:
            raise Refusal(
                f"{len(state.twins) + 1} content libraries are called {name}",
                why=f"their ids are {', '.join((state.library.id, *state.twins))}",
                next="rename those that are not meant, or name another one",
            )
        if spec is None:
            return (
                ()
                if state is None
                else (
                    Delete(name=name, id=state.library.id, subscribed=state.library.subscription is not None),
                )
            )
        wanted = _library(name, spec, context.mark, state)
        if state is None:
            if context.facts is not None:
                meant = the(
                    lookup(context.facts.datastores, spec.datastore), "datastore", spec.datastore, "datastore"
                )
                wanted = replace(wanted, datastore=meant.moid)
            return (Create(name=name, library=wanted, changes=compare.differences(None, spec.applied())),)
        _check_change(spec, state)
        found = compare.changes(spec, state.mark, _drift(spec, state, wanted))
        return (
            (Update(name=name, library=replace(wanted, id=state.library.id), changes=found),) if found else ()
        )

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The root, as libraries are vCenter's own. A local library takes other privileges than a subscribed
        one.
        """
        local, subscribed = ((ROOT,), ()) if spec.subscription is None else ((), (ROOT,))
        return {
            "local": local,
            "subscribed": subscribed,
            "datastore": (Entity(path_in(datacenter, "datastore", spec.datastore), "Datastore"),),
        }

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready at once; a library that follows another one by itself, after its first synchronisation."""
        follows = state.library.subscription
        return (
            waiting("its first synchronisation")
            if follows and follows.automatic_sync and not state.library.synced
            else READY
        )

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, in one call."""
        match step:
            case Create(library=library):
                self._libraries.create(library)
            case Update(library=library):
                self._libraries.update(library.id, library, step.writes)
            case Delete(id=identity, subscribed=subscribed):
                self._libraries.delete(identity, subscribed=subscribed)

    def _with_contents(self, state: State) -> State:
        """The state with the items that bfinfra didn't store in a local library. A subscribed library can be
        downloaded again.
        """
        if state.library.subscription is not None:
            return state
        return replace(
            state,
            contents=tuple(
                f"item {each}" for each in self._libraries.items(state.library.id) if OURS not in each
            ),
        )


def _one_of_each_name(found: Iterable[Library]) -> Iterator[tuple[Library, tuple[str, ...]]]:
    """The library that each name means, and the ids of others that it may mean: marked ones come first."""
    named: dict[str, list[Library]] = {}
    for each in found:
        named.setdefault(each.name, []).append(each)
    for those in named.values():
        first, *others = [each for each in those if _mark(each)] or those
        yield first, tuple(each.id for each in others)


def _mark(found: Library) -> Mark | None:
    """The library's own mark; None if somebody copied it from another library with the description."""
    return Mark.own(found.description, f"content_library/{found.name}")


def _library(name: str, spec: Spec, mark: Mark, state: State | None) -> Library:
    now, was = (state.library.description, state.mark) if state else (None, None)
    text = compare.description(spec, now, mark.committed(spec.applied()), was)
    followed = spec.subscription
    follows = (
        None
        if followed is None
        else Follows(followed.url, followed.on_demand, followed.automatic_sync, followed.thumbprint or "")
    )
    return Library(name, spec.datastore, text, follows)


def _view(library: Library) -> dict[str, Any]:
    """The library as a site writes it."""
    follows = library.subscription
    followed = follows and {
        "url": follows.url,
        "on_demand": follows.on_demand,
        "automatic_sync": follows.automatic_sync,
        "thumbprint": follows.thumbprint.lower() or None,
    }
    return {"description": above(library.description), "subscription": followed}


def _drift(spec: Spec, state: State, wanted: Library) -> Sequence[Change]:
    """The differences in what the site says. A thumbprint can't be removed: vCenter keeps it if the call
    leaves it out.
    """
    found = compare.drift(spec, state.mark, _view(state.library), _view(wanted))
    return [each for each in found if each.field != "subscription.thumbprint" or each.wanted is not None]


def _check_change(spec: Spec, state: State) -> None:
    """Raises Refusal for a change that vCenter can't make: to make the library anew would lose its items."""
    if spec.datastore != state.library.datastore:
        raise Refusal(
            f"the library is on {state.library.datastore or 'something other than a datastore'}",
            field="datastore",
            why="a library can't move to another datastore",
            next="write that, or make another library and delete this one",
        )
    if (spec.subscription is None) != (state.library.subscription is None):
        form = "local" if state.library.subscription is None else "subscribed"
        raise Refusal(
            f"the library is {form}",
            field="subscription",
            why="a local library can't become a subscribed one, nor the other way round",
            next="make another library and delete this one",
        )
