"""Where the recordings are, and their forms: vcr cassettes, OVF descriptors, definitions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FETCHED = Path(os.environ.get("RECORDED_DIR") or Path.home() / ".cache/bfinfra-recorded")
STORED = Path(os.environ.get("BFINFRA_RECORDED") or ROOT.parent / "shared/recorded")


def fetched(name: str) -> Path:
    """A folder of script/recorded, such as `wheel/vmware-vcenter-9.0.0.0`. Fails where it isn't there:
    anybody can fetch it.
    """
    found = FETCHED / name
    if not found.is_dir():
        pytest.fail(f"there is no {found}; fetch it with: script/recorded", pytrace=False)
    return found


def stored(name: str) -> Path:
    """A file of the stored recordings, which no registry has. Skips by name where it isn't there."""
    found = STORED / name
    if not found.exists():
        pytest.skip(f"{name} is not in {STORED} (BFINFRA_RECORDED)")
    return found


class _Loader(yaml.CSafeLoader):
    """Reads what Python 2 wrote."""


def _text(loader: Any, node: Any) -> Any:
    return loader.construct_scalar(node)


_Loader.add_constructor("tag:yaml.org,2002:python/unicode", _text)


@dataclass(frozen=True)
class Exchange:
    """One recorded exchange. `at`: the cassette and its place there."""

    at: str
    method: str
    uri: str
    asked: str
    status: int
    answer: bytes


def cassette(name: str, text: str) -> Iterator[Exchange]:
    """The exchanges of a cassette, of vcrpy or of Ruby's vcr."""
    kept = yaml.load(text, _Loader)
    for number, each in enumerate(kept.get("interactions") or kept["http_interactions"]):
        request, response = each["request"], each["response"]
        body, asked = response["body"]["string"], request["body"] or ""
        asked = asked if isinstance(asked, str) else asked["string"]
        yield Exchange(
            f"{name} {number}",
            request["method"].upper(),
            request["uri"],
            asked,
            response["status"]["code"],
            body if isinstance(body, bytes) else body.encode(),
        )
