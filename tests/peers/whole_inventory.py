"""Everything that a vCenter tells of its objects, read by plain SOAP without any library of vSphere: from the
service's content along each reference, every property of every object.
"""

from __future__ import annotations

import contextlib
import http.client
import ssl
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from peers.found import USER, Peers

OF_SESSIONS = frozenset(
    {"SessionManager", "EventManager", "TaskManager", "PropertyCollector", "ViewManager", "ListView", "Task"}
)
"""Objects of whoever is logged in, or that tell what happened: they differ after each call."""
BY_ITSELF: Mapping[str, str] = {
    "recentTask": "tells what happened",
    "ResourcePool summary/name": "vcsim gives all pools one summary, with the name of the last one that was made",
}
"""Properties that vcsim changes by itself: how their paths begin, of all types or of one, with the reason."""
PAGE = 200
"""Objects that are asked for at a time."""
TYPE = "{http://www.w3.org/2001/XMLSchema-instance}type"
Ref = tuple[str, str]
"""Type and id of an object."""
COLLECTOR = '<_this type="PropertyCollector">propertyCollector</_this>'
ENVELOPE = (
    '<?xml version="1.0"?><Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body xmlns:x='
    '"http://www.w3.org/2001/XMLSchema-instance"><{0} xmlns="urn:vim25">{1}</{0}></Body></Envelope>'
)


@dataclass(frozen=True)
class Whole:
    """`objects`: `VirtualMachine:vm-12` → path of a value in its properties → the value."""

    objects: Mapping[str, Mapping[str, str]]

    @property
    def properties(self) -> int:
        """How many values there are."""
        return sum(map(len, self.objects.values()))

    def named(self, ref: str) -> str:
        """An object, for a message."""
        return f"{ref} ({self.objects[ref].get('name', '')})"


def whole(peers: Peers) -> Whole:
    """What is there now."""
    with contextlib.closing(_Reader(peers)) as reader:
        return Whole(_along(reader))


def _along(reader: _Reader) -> dict[str, dict[str, str]]:
    todo = {("ServiceInstance", "ServiceInstance")}
    asked: set[Ref] = set()
    found: dict[str, dict[str, str]] = {}
    while todo:
        batch = sorted(todo)[:PAGE]
        asked |= {*batch}
        for ref, properties in reader.read(batch):
            seen: set[Ref] = set()
            values = {
                at: v for name, each in properties.items() for at, v in leaves(each, name, seen).items()
            }
            found[":".join(ref)] = {at: each for at, each in values.items() if not _by_itself(ref[0], at)}
            todo |= {one for one in seen if one[0] not in OF_SESSIONS}
        todo -= asked
    return found


def _by_itself(kind: str, path: str) -> bool:
    return any(text.startswith(tuple(BY_ITSELF)) for text in (path, f"{kind} {path}"))


def leaves(part: ET.Element, path: str, seen: set[Ref]) -> dict[str, str]:
    """Path → each value within. `seen` gets the objects that it refers to, whose order in a list means nothing."""
    if kind := part.get("type"):
        seen.add(ref := (kind, part.text or ""))
        return {f"{path}/{':'.join(ref)}": "there"}
    found = {f"{path}@type": part.get(TYPE, "")} if TYPE in part.attrib else {}
    if not len(part):
        return found | ({path: part.text} if part.text else {})
    count: Counter[str] = Counter()
    for each in part:
        tag = each.tag.rpartition("}")[2]
        at = f"{path}/{tag}" if each.get("type") else f"{path}/{tag}[{count[tag]}]"
        found |= leaves(each, at, seen)
        count[tag] += 1
    return found


class _Reader:
    """A session of its own."""

    def __init__(self, peers: Peers) -> None:
        host, _, port = peers.vcsim.rpartition(":")
        trust = ssl.create_default_context(cadata=ssl.get_server_certificate((host, int(port))))
        self._line = http.client.HTTPSConnection(host, int(port), context=trust, timeout=60)
        self._cookie = ""
        words = f"<userName>{USER}</userName><password>{peers.password}</password>"
        self._calls("Login", f'<_this type="SessionManager">SessionManager</_this>{words}')

    def close(self) -> None:
        """The session ends with vcsim."""
        self._line.close()

    def read(self, refs: Iterable[Ref]) -> Iterator[tuple[Ref, dict[str, ET.Element]]]:
        """Each object with its properties by name. vcsim names some that aren't there."""
        every = {*refs}
        while every:
            inner = "".join(
                f"<propSet><type>{kind}</type><all>true</all></propSet>"
                for kind in sorted({k for k, _ in every})
            )
            inner += "".join(
                f'<objectSet><obj type="{kind}">{ref}</obj></objectSet>' for kind, ref in sorted(every)
            )
            page = self._calls("RetrievePropertiesEx", f"{COLLECTOR}<specSet>{inner}</specSet><options/>")
            if (lost := page.find(".//{*}ManagedObjectNotFoundFault/{*}obj")) is None:
                break
            every.remove((lost.get("type", ""), lost.text or ""))
        while every:
            for each in page.iter("{urn:vim25}objects"):
                (thing, *sets) = each
                ref = (thing.get("type", ""), thing.text or "")
                yield ref, {part[0].text or "": part[1] for part in sets if part.tag.endswith("propSet")}
            token = page.find(".//{*}token")
            if token is None:
                return
            page = self._calls("ContinueRetrievePropertiesEx", f"{COLLECTOR}<token>{token.text}</token>")

    def _calls(self, method: str, inner: str) -> ET.Element:
        headers = {"Content-Type": "text/xml", "SOAPAction": "urn:vim25/8.0.3.0", "Cookie": self._cookie}
        self._line.request("POST", "/sdk", ENVELOPE.format(method, inner).encode(), headers)
        answer = self._line.getresponse()
        found = ET.fromstring(answer.read())
        self._cookie = (answer.getheader("Set-Cookie") or self._cookie).partition(";")[0]
        fault = found.find(".//{*}Fault")
        assert fault is None or "ManagedObjectNotFound" in ET.tostring(fault, "unicode"), ET.tostring(found)
        return found
