"""Files of this machine that are sent to others: their digests, and their names there."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path, PurePath

CACHE = "/var/cache/bfinfra"
"""The folder of packages and archives on a machine."""
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+~%:=@()-]{0,199}")
"""A file's name that a record, a list of paths and a package manager take as it is."""


def sent_name(file: str) -> str:
    """The name on a machine of a file that is sent there: its own if that is plain, else one made from it."""
    name = PurePath(file).name
    if PLAIN.fullmatch(name):
        return name
    suffix = PurePath(file).suffix
    made = f"file-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:12]}"
    return f"{made}{suffix}" if PLAIN.fullmatch(made + suffix) else made


def sent(file: str, dest: str = "") -> dict[str, object]:
    """A file to send, as roles take it. `dest`: its path there, if it isn't one of CACHE."""
    return {"source": Path(file), "dest": dest or f"{CACHE}/{sent_name(file)}"}


def digest(path: Path) -> str:
    """SHA-256 of a local file; "" if it can't be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""
