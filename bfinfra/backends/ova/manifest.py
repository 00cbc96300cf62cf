"""The manifest of an OVA: the digest of each of its files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from bfinfra.backends.archives.bounds import shown
from bfinfra.backends.ova.source import refusal

LINE = re.compile(r"(?P<algorithm>SHA-?\d+)\s*\((?P<name>.+)\)\s*=\s*(?P<digest>[0-9A-Fa-f]+)", re.IGNORECASE)
HEX = {"SHA1": 40, "SHA256": 64, "SHA384": 96, "SHA512": 128}  # digits of a digest


def parse(
    path: PurePath, data: bytes, names: Iterable[str], own: Sequence[str] = ()
) -> dict[str, tuple[str, str]]:
    """File name → (algorithm, digest in lower case), for exactly these `names`. Raises Refusal.

    `own`: the manifest and its certificate. A digest of those says nothing, as it can't be right, and is not
    looked at.
    """
    found: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        if not line.strip():
            continue
        match = LINE.fullmatch(line.strip())
        algorithm = match["algorithm"].replace("-", "").upper() if match else ""
        if not match or HEX.get(algorithm) != len(match["digest"]):
            raise refusal(
                path,
                f"line {number} of its manifest can't be understood: {shown(line)}",
                f"known: {', '.join(HEX)}",
            )
        name = match["name"].removeprefix("./")
        if name in found:
            raise refusal(path, f"its manifest names {shown(name)} twice")
        if name not in own:
            found[name] = (algorithm, match["digest"].lower())
    wanted = set(names)
    if missing := sorted(wanted - set(found)):
        raise refusal(path, f"its manifest lacks {missing[0]}", "so that file can't be verified")
    if extra := sorted(set(found) - wanted):
        raise refusal(path, f"its manifest names {shown(extra[0])}, which it does not hold")
    return found
