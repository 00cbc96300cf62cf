"""Reads properties: leaf or keyed paths only, always in pages, and missing properties are noticed.

Many objects are read through trees (tree.py) and passed on one by one, so that at most four pages are in
memory; a single object by pyVmomi.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from lxml.etree import _Element as Element
from pyVmomi import vim, vmodl
from pyVmomi.VmomiSupport import ManagedObject

from bfinfra.backends.vcenter import faults, queries, reads, refs, tree
from bfinfra.backends.vcenter.names import written
from bfinfra.model.errors import Missing
from bfinfra.model.records import dataclass

PAGE = 500  # objects in a page; real servers use pages anyway, and asking tests the loop everywhere
PART = (
    50,
    250,
)  # objects that are named in one request; fewer are not worth a request of their own, and more
# machines, with their devices, may exceed an answer's limit
ASIDE = 3  # such requests in parallel
Collector = vmodl.query.PropertyCollector
MissingProperty = Collector.MissingProperty
ABSENT = (vmodl.fault.ManagedObjectNotFound, vmodl.query.InvalidProperty)
NOTHING: Mapping[Any, Sequence[str]] = {}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """One object: its reference and its set properties, by path."""

    ref: Any
    values: Mapping[str, Any]

    @property
    def moid(self) -> str:
        """Its id, as `vm-42`."""
        return refs.moid(self.ref)

    @property
    def name(self) -> str:
        """Its name, as people write it."""
        return written(self["name"])

    def __getitem__(self, path: str) -> Any:
        return self.values.get(path)


def whole(row: Row) -> Row:
    """The row itself. Its Nodes keep their page in memory."""
    return row


def below(
    content: Any,
    root: Any,
    asked: Mapping[type[Any], Sequence[str]],
    make: Callable[[Row], T],
    beside: Mapping[Any, Sequence[str]] = NOTHING,
) -> list[T]:
    """The results of `make` for all objects of these types below `root`, with these paths, in one collector
    call (and its pages).

    `beside`: single objects of other types, with their paths; their rows come among the others. The view
    lives as long as the session. It must return itself too: a view that is gone would look like an empty
    inventory.
    """
    views, key = refs.views(content), (refs.moid(root), *sorted(kind.__name__ for kind in asked))
    _remember(content, beside)
    reads.of_session(content).all(root, asked)
    for _ in range(2):
        view = views.get(key)
        if view is None:
            view = views[key] = content.viewManager.CreateContainerView(root, list(asked), recursive=True)
        made = _through(content, view, asked, make, beside)
        if made is not None:
            return made
        views.pop(key, None)
    raise Missing(
        f"what is below {refs.moid(root)} can't be listed",
        server=refs.server(content),
        why="the server forgets its views",
    )


def renew(content: vim.ServiceInstanceContent, kind: type[object]) -> None:
    """Let the next read of objects of this type create its view anew. vcsim adds no new resource pool to a
    view that exists; vCenter does.
    """
    views = refs.views(content)
    for key in [key for key in list(views) if kind.__name__ in key[1:]]:
        views.pop(key, None)


def _through(
    content: vim.ServiceInstanceContent,
    view: object,
    asked: Mapping[type[Any], Sequence[str]],
    make: Callable[[Row], T],
    beside: Mapping[Any, Sequence[str]],
) -> list[T] | None:
    """The rows; None if the view doesn't return itself."""
    objects = [queries.viewed(view), *_each(beside)]
    paths = {
        **asked,
        **{type(ref): paths for ref, paths in beside.items()},
        vim.view.ContainerView: ["container"],
    }
    answered = False
    made: list[T] = []
    with contextlib.suppress(Missing), _readable(content):
        for row in _rows(content, _first(content, queries.first(paths, objects, PAGE))):
            if row.moid == refs.moid(view):
                answered = True
            else:
                made.append(make(row))
    return made if answered else None


def of(  # noqa: PLR0913 - what, of which, and what of it
    content: vim.ServiceInstanceContent,
    kind: type[Any],
    moids: Iterable[str],
    paths: Sequence[str],
    make: Callable[[Row], T],
    beside: Mapping[Any, Sequence[str]] = NOTHING,
) -> list[T]:
    """The results of `make` for these objects of one type, with these paths; deleted ones are left out.
    `beside`: as in `below`.
    """
    listed = list(moids)
    if not listed:
        return []
    _remember(content, beside)
    reads.of_session(content).some(kind, listed, paths)
    least, most = PART
    size = min(most, max(least, -(-len(listed) // (2 * ASIDE))))
    parts = [listed[n : n + size] for n in range(0, len(listed), size)]
    asked = {kind: paths}
    also = {type(ref): paths for ref, paths in beside.items()}
    questions = (
        queries.first(
            asked if n else asked | also, [*queries.named(kind, part), *(() if n else _each(beside))], PAGE
        )
        for n, part in enumerate(parts)
    )
    with _readable(content):
        return [make(row) for page in _side_by_side(content, questions) for row in _rows(content, page)]


def _each(beside: Mapping[Any, Sequence[str]]) -> list[str]:
    return [each for ref in beside for each in queries.named(type(ref), [refs.moid(ref)])]


def _remember(content: object, beside: Mapping[Any, Sequence[str]]) -> None:
    for ref, paths in beside.items():
        reads.of_session(content).some(type(ref), [refs.moid(ref)], paths)


def one(content: vim.ServiceInstanceContent, ref: object, paths: Sequence[str]) -> Row:
    """The properties of one object, as pyVmomi's values, which can be sent back to vCenter. Raises Missing if
    it is gone.
    """
    query = Collector.FilterSpec(
        objectSet=[Collector.ObjectSpec(obj=ref, skip=False)],
        propSet=[Collector.PropertySpec(type=type(ref), pathSet=list(paths), all=False)],
        reportMissingObjectsInResults=True,
    )
    page = content.propertyCollector.RetrievePropertiesEx([query], Collector.RetrieveOptions(maxObjects=PAGE))
    for found in (page.objects if page else None) or ():
        if not _gone(m.fault for m in found.missingSet or ()):
            _check(((m.path, m.fault) for m in found.missingSet or ()), found.obj, content)
            return Row(found.obj, {p.name: p.val for p in found.propSet or ()})
    raise Missing(f"{refs.moid(ref)} is gone", server=refs.server(content))


@contextlib.contextmanager
def _readable(content: vim.ServiceInstanceContent) -> Iterator[None]:
    try:
        yield
    except tree.Unfit as error:
        raise faults.malformed("a property can't be read", refs.server(content), error) from None


def _side_by_side(content: vim.ServiceInstanceContent, questions: Iterator[str]) -> Iterator[Element | None]:
    """The first page of each, in order; the next ones are requested meanwhile."""
    with ThreadPoolExecutor(ASIDE, thread_name_prefix="part") as asking:
        asked = [asking.submit(_first, content, each) for each in itertools.islice(questions, ASIDE)]
        while asked:
            page = asked.pop(0).result()
            asked += [asking.submit(_first, content, each) for each in itertools.islice(questions, 1)]
            yield page


def _first(content: vim.ServiceInstanceContent, question: str) -> Element | None:
    """The first page of an answer."""
    answer = refs.stub(content).read(content.propertyCollector, "RetrievePropertiesEx", question)
    found: Element | None = answer.find("{*}returnval")
    return found


def _rows(content: vim.ServiceInstanceContent, page: Element | None) -> Iterator[Row]:
    """Row by row, of this page and the following ones; the next is requested meanwhile."""
    collector, stub = content.propertyCollector, refs.stub(content)
    with ThreadPoolExecutor(1, thread_name_prefix="page") as background:
        while page is not None:
            token = page.findtext("{*}token")
            following = (
                background.submit(
                    stub.read, collector, "ContinueRetrievePropertiesEx", queries.following(token)
                )
                if token
                else None
            )
            for found in page.iterchildren("{*}objects"):
                if (row := _row(found, content, stub)) is not None:
                    yield row
            page = following.result().find("{*}returnval") if following else None


def _row(found: Element, content: vim.ServiceInstanceContent, stub: object) -> Row | None:
    ref = next((tree.value(each, ManagedObject, stub) for each in found.iterchildren("{*}obj")), None)
    missing = [tree.typed(each, MissingProperty, stub) for each in found.iterchildren("{*}missingSet")]
    if _gone(m.fault for m in missing):
        return None
    _check(((m.path, m.fault) for m in missing), ref, content)
    values = {}
    for each in found.iterchildren("{*}propSet"):
        if not (parts := list(each)):
            raise tree.Unfit("a property has no name")
        # vcsim leaves out an empty value
        values[parts[0].text or ""] = tree.value(parts[1], object, stub) if len(parts) > 1 else None
    return Row(ref, values)


def _check(missing: Iterable[tuple[str, object]], ref: object, content: vim.ServiceInstanceContent) -> None:
    for path, fault in missing:
        if not isinstance(fault, ABSENT):
            raise faults.of_fault(fault, f"{path} of {refs.moid(ref)} can't be read", refs.server(content))


def _gone(found: Iterable[object]) -> bool:
    return any(isinstance(fault, vmodl.fault.ManagedObjectNotFound) for fault in found)
