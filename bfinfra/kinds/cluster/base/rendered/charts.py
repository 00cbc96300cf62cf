"""A chart as the source of a rendering: its archive is compared with the digest that the site names."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bfinfra.backends.helm import (
    Capabilities,
    ChartFile,
    Release,
    asked_of,
    defaults_of,
    merged,
    read,
    template,
    typed,
    version_of,
)
from bfinfra.kinds.cluster.base.rendered.objects import Manifest
from bfinfra.kinds.cluster.base.rendered.rendering import documents
from bfinfra.model import foreign
from bfinfra.model.sources import small

Named = tuple[str, str, Mapping[str, Any]]
"""Release, namespace and values."""


def of_chart(path: Path, digest: str, release: Named, capabilities: Capabilities) -> tuple[Manifest, ...]:
    """The rendered objects. Raises ValueError, also for an archive with another digest."""
    name, namespace, given = release
    chart = _verified(path, digest)
    return _rendered(chart, name, namespace, json.dumps(given, sort_keys=True), capabilities)


def values(path: Path, digest: str, files: Iterable[Path], above: Mapping[str, object]) -> dict[str, Any]:
    """The chart's values from files, and those that a site has above them, with the types of its defaults.
    Raises ValueError.
    """
    found: dict[str, Any] = {}
    for file in files:
        try:
            (inside,) = foreign.documents(small(file)) or [{}]
        except OSError as error:
            raise ValueError(f"{file} can't be read: {error.strerror}") from None
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
        if not isinstance(inside, dict | None):
            raise ValueError(f"{file} has no mapping")
        found = merged(found, inside or {})
    defaults = defaults_of(_verified(path, digest)) if above else {}
    return merged(found, typed(above, merged(defaults, found)))


def asked(path: Path, digest: str) -> tuple[str, ...]:
    """The APIs that the chart's templates ask for. Raises ValueError."""
    return asked_of(_verified(path, digest))


def versioned(path: Path, digest: str) -> str:
    """The chart's version. Raises ValueError."""
    return version_of(_verified(path, digest))


@functools.lru_cache(maxsize=16)
def _rendered(
    chart: ChartFile, name: str, namespace: str, values: str, capabilities: Capabilities
) -> tuple[Manifest, ...]:
    text = template(chart, Release(name, namespace, json.loads(values)), capabilities)
    return documents(text, f"the rendering of {chart.path.name}")


def _verified(path: Path, digest: str) -> ChartFile:
    try:
        found = read(path)
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}") from None
    if f"sha256:{found.digest}" != digest:
        raise ValueError(
            f"{path} has the digest sha256:{found.digest}, and the site names another one; get the right "
            "archive, or look at what changed and write its digest"
        )
    return found
