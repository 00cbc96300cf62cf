"""The contents of an OVA, for people: its product, required properties, networks, disks, and whether it is
complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bfinfra.model.units import bytes_short, bytes_text
from bfinfra.render.safe import safe
from bfinfra.render.style import PLAIN, Style
from bfinfra.render.values import count, shown

Found = Mapping[str, Any]
WHOLE = {
    "verified": "every file agrees with the manifest",
    "present": "has a manifest; --verify checks it",
    "absent": "has no manifest: only the SHA-256 of the whole file can show whether it is complete",
}


def text(found: Found, style: Style = PLAIN) -> str:
    """One paragraph for each topic. Required properties are marked."""
    blocks = [
        _head(found, style),
        *(
            _block(title, lines, style)
            for title, lines in (
                ("properties", _properties(found, style)),
                ("networks", _networks(found)),
                ("disks", _disks(found)),
                ("deployment options", _options(found)),
            )
        ),
    ]
    return "\n\n".join(filter(None, blocks))


def _block(title: str, lines: Iterator[str], style: Style) -> str:
    body = list(lines)
    return "\n".join([style.paint(title, "bold"), *body]) if body else ""


def _head(found: Found, style: Style) -> str:
    product, hardware, manifest = found["product"], found["hardware"], found["manifest"]
    name = " ".join(
        filter(None, (product["vendor"], product["name"], product["full_version"] or product["version"]))
    )
    return "\n".join(
        [
            f"{style.paint(safe(name) or 'a product without a name', 'bold')}",
            (
                f"  {safe(found['file'])}, {bytes_short(found['size'])}, {WHOLE[manifest['state']]}"
                f"{_algorithms(manifest)}"
            ),
            *_signature(found, style),
            (
                f"  {count(hardware['cpus'], 'CPU')}, {bytes_text(hardware['memory'])} memory, "
                f"{safe(hardware['version'])}, {safe(hardware['firmware'])}"
            ),
            *([f"  {count(len(found['licences']), 'licence')} to accept"] if found["licences"] else []),
        ]
    )


def _algorithms(manifest: Found) -> str:
    return f" ({safe(', '.join(manifest['algorithms']))})" if manifest["algorithms"] else ""


def _signature(found: Found, style: Style) -> Iterator[str]:
    signature = found["signature"]
    if signature is None:
        return
    by = "by itself" if signature["own"] else f"by {safe(signature['issuer'])}"
    until = f"until {signature['not_after'][:10]}" + (
        f", {style.paint('which is over', 'yellow')}" if signature["expired"] else ""
    )
    yield (
        f"  its manifest is signed ({safe(signature['algorithm'])}) by {safe(signature['subject'])}, "
        f"certified {by}, {until}"
    )
    yield f"  compare the certificate's SHA-256: {signature['sha256']}"


def _properties(found: Found, style: Style) -> Iterator[str]:
    for each in found["properties"]:
        marks = [
            word
            for word, there in (
                ("required", each["required"] and not each["default"]),
                ("secret", each["password"]),
            )
            if there
        ]
        default = f", default {shown(each['default'])}" if each["default"] and not each["password"] else ""
        fixed = "" if each["user_configurable"] else ", can't be set"
        kind = " ".join(filter(None, (each["type"], each["qualifiers"])))
        yield (
            f"  {safe(each['key'])}: {safe(kind)}{default}{fixed}"
            f"{''.join(', ' + style.paint(mark, 'yellow') for mark in marks)}"
        )
        if about := each["label"] or each["description"]:
            yield f"      {safe(about)}"


def _networks(found: Found) -> Iterator[str]:
    for each in found["networks"]:
        yield f"  {safe(each['name'])}" + (f": {safe(each['description'])}" if each["description"] else "")


def _disks(found: Found) -> Iterator[str]:
    for each in found["disks"]:
        yield (
            f"  {safe(each['id'])}: {bytes_short(each['capacity'])}, {bytes_short(each['size'])} in "
            f"{safe(each['href'])}"
        )


def _options(found: Found) -> Iterator[str]:
    for each in found["deployment_options"]:
        yield f"  {safe(each['id'])}: {safe(each['label'])}{' (default)' if each['default'] else ''}"
