"""Property mapping: the values that a deployment gives to a descriptor's properties, checked as vCenter
does.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.soap.ovf_descriptor import Descriptor, Property

ADD = "add"
NUMBERS = ("int", "uint8", "uint16", "uint32", "sint8", "sint16", "sint32")


def given(mapping: Any) -> dict[str, str]:
    """The mapping's values by property id."""
    return {each.key: each.value for each in mapping or []}


def problems(descriptor: Descriptor, values: dict[str, str]) -> list[Any]:
    """A fault for each value that can't be: no such property, not for the user to set, not of the type."""
    known = {each.id: each for each in descriptor.properties}
    found = [
        vim.fault.OvfProperty(
            lineNumber=1, type="string", value=key, msg=f"The OVF descriptor has no property '{key}'."
        )
        for key in values
        if key not in known
    ]
    for key, value in values.items():
        each = known.get(key)
        if each is None or value == each.value:
            continue
        if not each.user_configurable:
            found.append(
                vim.fault.NotUserConfigurableProperty(
                    **fields(each), msg=f"Property '{key}' is not user configurable."
                )
            )
        elif why := wrong(each, value):
            found.append(
                vim.fault.OvfPropertyValue(
                    lineNumber=1,
                    type=each.type,
                    value="" if each.password else value,
                    msg=f"Property '{key}': {why}.",
                )
            )
    return found


def fields(each: Property) -> dict[str, str]:
    """Return the part of a vApp property fault that describes its property."""
    return {"id": each.id, "category": each.category, "label": each.label, "type": each.type, "value": ""}


def wrong(each: Property, value: str) -> str:
    """Return why the value doesn't fit the type; "" where it does."""
    if each.type == "boolean" and value.lower() not in ("true", "false"):
        return "the value is neither true nor false"
    if each.choices and value not in each.choices:
        return f"the value is none of {', '.join(each.choices)}"
    if each.type in NUMBERS:
        return number(each, value)
    if each.type == "ip" and value and not is_address(value):
        return "the value is no IP address"
    if (value and len(value) < each.least) or (each.most is not None and len(value) > each.most):
        return f"the value's length is not within {each.least}..{each.most or ''}"
    return ""


def number(each: Property, value: str) -> str:
    """Return why the value is no number within the property's bounds."""
    if not value.lstrip("-").isdigit():
        return "the value is no whole number"
    within = int(value) >= each.least and (each.most is None or int(value) <= each.most)
    return "" if within else f"the value is not within {each.least}..{each.most or ''}"


def is_address(text: str) -> bool:
    """Return whether the text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def vapp_type(each: Property) -> str:
    """The type in the form of a vApp property: "string(1..64)", "password(8..)"."""
    base = "password" if each.password else "int" if each.type in NUMBERS else each.type
    bounds = f"({each.least or ''}..{each.most or ''})" if each.least or each.most is not None else ""
    return f"{base}{bounds}" if base in ("string", "password", "int") else base


def vapp_spec(descriptor: Descriptor, values: dict[str, str]) -> Any:
    """Products and properties as a vApp configuration; values that differ from the default are set."""
    products = [
        vim.vApp.ProductSpec(
            operation=ADD,
            info=vim.vApp.ProductInfo(
                key=key,
                **texts(
                    classId=each.class_id,
                    instanceId=each.instance_id,
                    name=each.name,
                    vendor=each.vendor,
                    version=each.version,
                    fullVersion=each.full_version,
                    productUrl=each.product_url,
                ),
            ),
        )
        for key, each in enumerate(descriptor.products)
    ]
    properties = [
        vim.vApp.PropertySpec(
            operation=ADD,
            info=vim.vApp.PropertyInfo(
                key=key,
                id=each.key,
                type=vapp_type(each),
                userConfigurable=each.user_configurable,
                value=value_of(each, values),
                **texts(
                    classId=each.class_id,
                    instanceId=each.instance_id,
                    category=each.category,
                    label=each.label,
                    defaultValue=each.value,
                    description=each.description,
                ),
            ),
        )
        for key, each in enumerate(descriptor.properties)
    ]
    return vim.vApp.VmConfigSpec(
        product=products,
        property=properties,
        eula=list(descriptor.eulas),
        ovfEnvironmentTransport=list(descriptor.transports),
        installBootRequired=False,
        ipAssignment=vim.vApp.IPAssignmentInfo(ipAllocationPolicy="fixedPolicy", ipProtocol="IPv4"),
    )


def texts(**fields: str) -> dict[str, str]:
    """Those that are not empty: vCenter leaves out what a descriptor leaves empty."""
    return {name: value for name, value in fields.items() if value}


def value_of(each: Property, values: dict[str, str]) -> str:
    """The value that was set, "" for the default."""
    return values[each.id] if each.id in values and values[each.id] != each.value else ""
