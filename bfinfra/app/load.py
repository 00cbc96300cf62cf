"""Reads a site's files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.model.site import Site, VCenterSettings
from bfinfra.model.sources import LocalFile
from bfinfra.model.trust import Trust
from bfinfra.model.variant import Given, Variant
from bfinfra.spec.load import load as load_files

if TYPE_CHECKING:
    from bfinfra.sandbox import Running


def load(
    *paths: str | Path,
    sandbox: Running | None = None,
    overlays: Sequence[str | Path] = (),
    values: Mapping[str, object] | None = None,
    value_files: Sequence[str | Path] = (),
) -> Site:
    """The site in these files. The sandbox provides values for its references. Raises SiteError with every
    problem.

    `overlays`: files or folders, each applied to what comes before it; `values`: name → value for `{value:
    NAME}`; `value_files`: files of such values.
    """
    given = tuple(Given(name, data, f"values: {name}") for name, data in (values or {}).items())
    variant = Variant(tuple(map(Path, overlays)), tuple(map(Path, value_files)), given)
    return load_variant([Path(path) for path in paths], variant, sandbox)


def load_variant(paths: Sequence[Path], variant: Variant, sandbox: Running | None = None) -> Site:
    """The same, with a Variant instead of its parts."""
    if sandbox is None:
        return load_files(paths, variant=variant)
    site = load_files(
        paths, variant=variant, env={**os.environ, **sandbox.env}, stand_ins=Path(sandbox.files)
    )
    return replace(site, vcenter=trusting(site.vcenter, sandbox)) if site.vcenter else site


def trusting(settings: VCenterSettings, sandbox: Running) -> VCenterSettings:
    """The settings with the sandbox's authority, where they trust this machine's store, which lacks it."""
    if settings.trust != Trust():
        return settings
    authority = LocalFile(str(sandbox.ca_file), sandbox.ca_file)
    return settings.model_copy(update={"trust": Trust(ca_file=authority)})
