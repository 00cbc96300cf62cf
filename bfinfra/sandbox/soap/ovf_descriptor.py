"""An OVF descriptor as data: files, disks, networks, hardware items, product sections."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lxml import etree

from bfinfra.sandbox.inventory.vmtypes import vim

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

OVF = "http://schemas.dmtf.org/ovf/envelope/1"
VMW = "http://www.vmware.com/schema/ovf"
SAFE = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
TRUE = ("true", "1")
QUOTED = r'"(?:[^"\\]|\\.)*"'
PREFIXES = ["kilo", "kibi", "mega", "mebi", "giga", "gibi", "tera", "tebi", "peta", "pebi"]
WORDS = {
    "byte": 1,
    "bytes": 1,
    **{f"{p}byte": (1024 if p.endswith("bi") else 1000) ** (n // 2 + 1) for n, p in enumerate(PREFIXES)},
    **{f"{p}bytes": 1024 ** (n // 2 + 1) for n, p in enumerate(PREFIXES)},
    **{f"{p[0]}{b}": 1024 ** (n // 2 + 1) for n, p in enumerate(PREFIXES) for b in ("b", "ib")},
}
"""Names of units: those of VMware, which count in 1024, and DSP0004's singular ones."""


@dataclass(frozen=True)
class Property:
    """One property of a product section; `id` is "class.key.instance"."""

    id: str
    class_id: str
    instance_id: str
    key: str
    type: str
    value: str
    user_configurable: bool
    password: bool
    category: str
    label: str
    description: str
    least: int  # of a text's length or of a number's value
    most: int | None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Disk:
    """One disk: capacity in bytes, and the file that fills it ("" for an empty one)."""

    id: str
    capacity: int
    file: str


@dataclass(frozen=True)
class File:
    """One referenced file: its name in the package and its size in bytes (0 where not given)."""

    id: str
    href: str
    size: int
    compression: str
    chunk: int


@dataclass(frozen=True)
class Product:
    """One product section's own fields."""

    class_id: str
    instance_id: str
    name: str
    vendor: str
    version: str
    full_version: str
    product_url: str


@dataclass(frozen=True)
class Item:
    """One piece of virtual hardware, its fields by name. `required`: refused where it is not known."""

    fields: dict[str, str]
    required: bool = True

    @property
    def kind(self) -> int:
        """The CIM resource type."""
        return int(self.fields.get("ResourceType", "0"))

    @property
    def instance(self) -> str:
        """The id by which other items name it as their parent."""
        return self.fields.get("InstanceID", "")


@dataclass(frozen=True)
class Descriptor:
    """One descriptor with one virtual system."""

    name: str
    annotation: str
    os_type: str
    family: str
    transports: tuple[str, ...]
    files: dict[str, File]
    disks: dict[str, Disk]
    networks: dict[str, str]
    items: tuple[Item, ...]
    products: tuple[Product, ...]
    properties: tuple[Property, ...]
    eulas: tuple[str, ...]
    config: dict[str, str] = field(default_factory=dict)
    extra: dict[str, str] = field(default_factory=dict)


def parse(text: str) -> Descriptor:
    """The descriptor. OvfXmlFormat for what is no XML, OvfMissingElement for what is no descriptor of one
    machine.
    """
    root = parse_xml(text)
    system = _required(root, "VirtualSystem")
    hardware = _required(system, "VirtualHardwareSection")
    operating = system.find(f"{{{OVF}}}OperatingSystemSection")
    sections = system.findall(f"{{{OVF}}}ProductSection")
    option = default_option(root)
    properties = tuple(each for section in sections for each in properties_of(section, option))
    return Descriptor(
        name=child(system, "Name") or attribute(system, "id"),
        annotation=child(system.find(f"{{{OVF}}}AnnotationSection"), "Annotation"),
        os_type=operating.get(f"{{{VMW}}}osType", "") if operating is not None else "",
        family=next((each.text or "" for each in hardware.iter("{*}VirtualSystemType")), ""),
        transports=tuple(attribute(hardware, "transport").split()),
        files={each.id: each for each in map(file_of, root.iter(f"{{{OVF}}}File"))},
        disks={each.id: each for each in (disk_of(disk, properties) for disk in root.iter(f"{{{OVF}}}Disk"))},
        networks={
            attribute(each, "name"): child(each, "Description") for each in root.iter(f"{{{OVF}}}Network")
        },
        items=tuple(map(item_of, items_of(hardware, option))),
        products=tuple(map(product_of, sections)),
        properties=properties,
        eulas=tuple(child(each, "License") for each in system.findall(f"{{{OVF}}}EulaSection")),
        config=pairs(hardware, "Config"),
        extra=pairs(hardware, "ExtraConfig"),
    )


def parse_xml(text: str) -> Element:
    """The envelope's root element."""
    try:
        root = etree.fromstring(text.encode(), SAFE)
    except etree.XMLSyntaxError as error:
        raise vim.fault.OvfXmlFormat(
            lineNumber=error.lineno or 1,
            description=str(error)[:200],
            msg=f"The OVF descriptor is not XML: {error}"[:300],
        ) from None
    docinfo: Any = root.getroottree().docinfo
    if docinfo.doctype:
        raise vim.fault.OvfXmlFormat(
            lineNumber=1,
            description="document type",
            msg="The OVF descriptor has a document type, which is not allowed.",
        )
    if root.tag != f"{{{OVF}}}Envelope":
        raise vim.fault.OvfMissingElement(
            lineNumber=1, name="Envelope", msg="The OVF descriptor has no Envelope"
        )
    return root


def _required(parent: Element, name: str) -> Element:
    found = parent.find(f"{{{OVF}}}{name}")
    if found is None:
        line = parent.sourceline or 1
        raise vim.fault.OvfMissingElement(
            lineNumber=line, name=name, msg=f"Line {line}: the descriptor has no {name}"
        )
    return found


def local(element: Any) -> str:
    """An element's name without its namespace."""
    return str(etree.QName(element).localname) if isinstance(element.tag, str) else ""


def attribute(element: Any, name: str) -> str:
    """An attribute of OVF's namespace, or of none."""
    return str(element.get(f"{{{OVF}}}{name}") or element.get(name) or "")


def child(element: Any, name: str) -> str:
    """The text of a child; "" where there is none."""
    found = element.find(f"{{{OVF}}}{name}") if element is not None else None
    return (found.text or "").strip() if found is not None else ""


def number(text: str, name: str) -> int:
    """A whole number. OvfInvalidValue for another text."""
    if not text.isdigit():
        raise vim.fault.OvfInvalidValue(
            lineNumber=1,
            elementName=name,
            attributeName=name,
            value=text,
            msg=f"The OVF descriptor's {name} is no number: {text!r}",
        )
    return int(text)


def file_of(element: object) -> File:
    """A referenced file."""
    return File(
        attribute(element, "id"),
        attribute(element, "href"),
        number(attribute(element, "size") or "0", "size"),
        attribute(element, "compression"),
        number(attribute(element, "chunkSize") or "0", "chunkSize"),
    )


def default_option(root: Element) -> str:
    """The deployment option that is taken where none is named: the default one, else the first; "" where
    there are none.
    """
    options = list(root.iter(f"{{{OVF}}}Configuration"))
    chosen = next(
        (each for each in options if attribute(each, "default") in TRUE), options[0] if options else None
    )
    return attribute(chosen, "id") if chosen is not None else ""


def items_of(hardware: Element, option: str) -> list[Element]:
    """The hardware of one deployment option; its own items replace the general ones of the same id, and
    bounds are left out.
    """
    found = [each for each in hardware if local(each) in ("Item", "EthernetPortItem", "StorageItem")]
    found = [each for each in found if attribute(each, "bound") in ("", "normal")]
    own = [each for each in found if option and option in attribute(each, "configuration").split()]
    ids = {item_of(each).instance for each in own} - {""}
    general = [
        each for each in found if not attribute(each, "configuration") and item_of(each).instance not in ids
    ]
    return [each for each in found if each in own or each in general]


def disk_of(element: object, properties: tuple[Property, ...]) -> Disk:
    """A disk of the disk section; its capacity may be a property's value."""
    written = attribute(element, "capacity") or "0"
    if match := re.fullmatch(r"\$\{(.+)\}", written):
        written = next((each.value or "0" for each in properties if each.id == match[1]), written)
    unit = units(written_unit := attribute(element, "capacityAllocationUnits"))
    if unit is None:
        raise vim.fault.OvfInvalidValue(
            lineNumber=1,
            elementName="Disk",
            attributeName="capacityAllocationUnits",
            value=written_unit,
            msg=f"The OVF descriptor counts a capacity in {written_unit!r}.",
        )
    capacity = number(written, "capacity") * unit
    return Disk(attribute(element, "diskId"), capacity, attribute(element, "fileRef"))


def units(text: str) -> int | None:
    """Bytes in an allocation unit: "byte * 2^30", "MegaBytes"; None for what is none."""
    found, named = 1, 0
    for factor in re.sub(r"\s+", "", text).lower().split("*") if text.strip() else ():
        if factor in WORDS:
            named, found = named + 1, found * WORDS[factor]
        elif match := re.fullmatch(r"([1-9]\d{0,18})(\^([1-9]\d?))?", factor):
            found *= int(match[1]) ** int(match[3] or 1)
        else:
            return None
        if named > 1 or found >= 2**63:
            return None
    return found


def item_of(element: Any) -> Item:
    """A hardware item."""
    fields: dict[str, str] = {}
    for each in element:
        fields.setdefault(local(each), (each.text or "").strip())
    return Item(fields, attribute(element, "required") not in ("false", "0"))


def product_of(section: object) -> Product:
    """The fields of a product section."""
    return Product(
        attribute(section, "class"),
        attribute(section, "instance"),
        child(section, "Product"),
        child(section, "Vendor"),
        child(section, "Version"),
        child(section, "FullVersion"),
        child(section, "ProductUrl"),
    )


def properties_of(section: Any, option: str) -> list[Property]:
    """A section's properties, each with the category before it."""
    category, found = "", []
    for each in section:
        if local(each) == "Category":
            category = (each.text or "").strip()
        elif local(each) == "Property":
            found.append(property_of(section, each, category, option))
    return found


def property_of(section: Any, element: Any, category: str, option: str) -> Property:
    """One property; its qualifiers bound its length or its value, and a deployment option may have a value of
    its own.
    """
    class_id, key, instance_id = (
        attribute(section, "class"),
        attribute(element, "key"),
        attribute(section, "instance"),
    )
    written = attribute(element, "qualifiers") or element.get(f"{{{VMW}}}qualifiers") or ""
    choices = [found[1:-1].replace('\\"', '"') for found in re.findall(QUOTED, written)]
    qualifiers = dict(re.findall(r"(\w+)\(([^)]*)\)", re.sub(QUOTED, "", written)))
    least, most = (qualifiers.get(f"{each}Len") or qualifiers.get(f"{each}Value") for each in ("Min", "Max"))
    return Property(
        ".".join(part for part in (class_id, key, instance_id) if part),
        class_id,
        instance_id,
        key,
        attribute(element, "type") or "string",
        default_value(element, option),
        attribute(element, "userConfigurable") in TRUE,
        attribute(element, "password") in TRUE,
        category,
        child(element, "Label"),
        child(element, "Description"),
        int(least or 0),
        int(most) if most else None,
        tuple(choices),
    )


def default_value(element: Element, option: str) -> str:
    """The value that the deployment option gives, else the property's own."""
    values = {
        attribute(each, "configuration"): attribute(each, "value")
        for each in element.iterfind(f"{{{OVF}}}Value")
    }
    return values.get(option) or attribute(element, "value") or values.get("", "")


def pairs(hardware: Any, name: str) -> dict[str, str]:
    """`vmw:Config` or `vmw:ExtraConfig` elements by key."""
    return {
        each.get(f"{{{VMW}}}key", ""): each.get(f"{{{VMW}}}value", "")
        for each in hardware.iter(f"{{{VMW}}}{name}")
    }
