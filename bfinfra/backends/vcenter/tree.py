"""An answer of vCenter as a tree, which lxml reads while it arrives. Values are made when they are read;
pyVmomi's parser makes all, ten times as slowly.

pyVmomi's type metadata decides what each value is, so the values equal pyVmomi's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from lxml import etree
from lxml.etree import _Element as Element
from pyVmomi import Iso8601
from pyVmomi.SoapAdapter import Deserialize
from pyVmomi.VmomiSupport import DataObject, GetPropertyInfo, GuessWsdlType, ManagedObject, binary

XSI = "{http://www.w3.org/2001/XMLSchema-instance}type"
Reader = Callable[[Element, Any], Any]
"""Turns an element, and the stub for its references, into the value."""
TRUE, FALSE = ("true", "1"), ("false", "0")


class Unfit(ValueError):
    """An element does not fit its type."""


def parse(blocks: Iterable[bytes]) -> Element:
    """The root of a document that arrives in blocks. Raises etree.XMLSyntaxError, Unfit."""
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    for block in blocks:
        parser.feed(block)
    root: Element = parser.close()
    if root.getroottree().docinfo.internalDTD is not None:
        raise Unfit("it declares a document type")
    return root


class Node:
    """A data object. `kind`: its vSphere type; attributes are read from the tree once. Unset ones are None,
    or an empty list.
    """

    def __init__(self, element: Element, kind: Any, stub: Any) -> None:
        self.kind, self._element, self._stub = kind, element, stub

    def __getattr__(self, name: str) -> Any:
        found = vars(self)[name] = _attribute(self.kind, name)(self._element, self._stub)
        return found


class Nodes(Sequence[Any]):
    """A list of data objects, each made when it is read."""

    def __init__(self, element: Element, kind: Any, stub: Any) -> None:
        self._element, self._kind, self._stub = element, kind, stub

    def __len__(self) -> int:
        return len(self._element)

    def __getitem__(self, index: Any) -> Any:
        return value(self._element[index], self._kind, self._stub)

    def __iter__(self) -> Iterator[Any]:
        return (value(each, self._kind, self._stub) for each in self._element)

    def table(self, *names: str) -> list[tuple[str | None, ...]]:
        """Plain attributes of each object, as text, None if unset. For thousands of small objects this takes
        a fifth of the time of `texts`.
        """
        columns = [
            [each.text or "" for each in self._element.iterdescendants(f"{{*}}{name}")] for name in names
        ]
        if all(len(column) == len(self) for column in columns):
            return list(zip(*columns, strict=True))
        return [tuple(map(found.get, names)) for found in map(texts, self)]


def texts(found: Any) -> Mapping[str, str]:
    """Name → text of the plain attributes of a Node, in half the time of reading each. Not for lists."""
    return {child.tag.rpartition("}")[2]: child.text or "" for child in found._element}  # noqa: SLF001 - this module's own


def number(name: str, text: str | None) -> int:
    """A whole number from the attribute with this name. Raises Unfit."""
    try:
        return int(text or "")
    except ValueError as error:
        raise Unfit(f"{name}: {error}") from None


def truth(name: str, text: str | None) -> bool:
    """A boolean from the attribute with this name; False if it is missing. Raises Unfit."""
    try:
        return text is not None and _bool(text)
    except TypeError as error:
        raise Unfit(f"{name}: {error}") from None


def kind_of(found: object) -> Any:
    """The vSphere type of a value, pyVmomi's or a Node."""
    return found.kind if isinstance(found, Node) else type(found)


def is_a(found: object, kind: type[Any]) -> bool:
    """Return whether a value, pyVmomi's or a Node, is of this vSphere type."""
    return issubclass(kind_of(found), kind)


def value(element: Element, declared: Any, stub: Any) -> Any:
    """An element's value: text, numbers, times and references as in pyVmomi, lists, Nodes. Raises Unfit."""
    if name := element.get(XSI):
        return _reader_of(name)(element, stub)
    return _reader(declared.Item if issubclass(declared, list) else declared)(element, stub)


def typed(element: Element, declared: type[Any], stub: object) -> Any:
    """The same as pyVmomi's whole object, for the few values that are sent back to vCenter or to its
    faults.
    """
    return Deserialize(etree.tostring(element), declared, stub)


@functools.lru_cache(maxsize=4096)
def _reader_of(name: str) -> Reader:
    """The reader for elements that name their own type."""
    return _reader(_named(name))


@functools.cache
def _reader(kind: Any) -> Reader:
    """The reader for elements of a type."""
    if issubclass(kind, list) and issubclass(kind.Item, DataObject):
        return lambda element, stub: Nodes(element, kind.Item, stub)
    if issubclass(kind, list):
        return lambda element, stub: [value(child, kind.Item, stub) for child in element]
    if issubclass(kind, ManagedObject):
        return lambda element, stub: _named(element.get("type", ""))(element.text, stub)
    if issubclass(kind, DataObject):
        return lambda element, stub: Node(element, kind, stub)
    make = _plain(kind)

    def plain(element: Element, _: object) -> Any:
        try:
            return make(element.text or "")
        except (TypeError, ValueError, AttributeError) as error:
            raise Unfit(f"{etree.QName(element).localname}: {error}") from None

    return plain


@functools.lru_cache(maxsize=4096)
def _named(name: str) -> Any:
    """The type with this name and any prefix: the APIs in use have no two types of one name."""
    local = name.rpartition(":")[2]
    try:
        return GuessWsdlType(local)
    except KeyError:
        if local.endswith("ManagedObjectReference"):
            return GuessWsdlType(local.removesuffix("Reference"))
        raise Unfit(f"there is no type {local}") from None


@functools.cache
def _attribute(kind: object, name: str) -> Reader:
    """The reader for an attribute of a type. If the attribute is declared as a plain value, its element's own
    type does not count.
    """
    declared, path = GetPropertyInfo(kind, name).type, f"{{*}}{name}"
    if issubclass(declared, list):
        return lambda element, stub: [value(each, declared, stub) for each in element.iterchildren(path)]
    read = (
        _reader(declared)
        if issubclass(declared, (str, int, float))
        else lambda element, stub: value(element, declared, stub)
    )

    def first(element: Element, stub: object) -> Any:
        for found in element.iterchildren(path):  # `find` takes twice as long
            return read(found, stub)
        return None

    return first


@functools.cache
def _plain(kind: Any) -> Callable[[str], Any]:
    if kind is bool:
        return _bool
    if kind is datetime:
        return _time
    if kind is binary:
        raise Unfit("binary values are not read in bulk")
    if kind is type:
        raise Unfit("names of types are not read in bulk")
    made: Callable[[str], Any] = kind  # text, numbers, enumerations
    return made


def _bool(text: str) -> bool:
    if text.lower() in TRUE:
        return True
    if text.lower() in FALSE:
        return False
    raise TypeError(text)


def _time(text: str) -> Any:
    found = Iso8601.ParseISO8601(text)
    if not found:
        raise TypeError(text)
    return found
