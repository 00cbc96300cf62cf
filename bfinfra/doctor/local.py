"""This machine: references, files, appliances, tools, and room for the journal."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

from bfinfra.backends import ova, tls
from bfinfra.doctor.ground import CheckContext
from bfinfra.model.errors import BfinfraError
from bfinfra.model.finding import Finding, bad, good, warning
from bfinfra.model.units import bytes_short
from bfinfra.spec.load import awaited_files, missing_references

LEAST = 100 << 20  # bytes that journals and marks may take in a long run


def references(ground: CheckContext) -> Iterator[Finding]:
    """What the site refers to is there: environment variables, files, key rings."""
    found = missing_references(ground.site)
    for problem in found:
        yield bad(str(problem.where) or ground.site.name, problem.what, problem.why, problem.next)
    awaited = awaited_files(ground.site)
    for problem in awaited:
        yield warning(str(problem.where), problem.what, problem.why, problem.next)
    if not found and not awaited:
        yield good(ground.site.name, "every reference of the site leads somewhere")


def files(ground: CheckContext) -> Iterator[Finding]:
    """Authorities and kubeconfigs can be read, by nobody else where they are secret."""
    trusts = [
        each
        for each in (
            ground.site.vcenter and ground.site.vcenter.trust,
            ground.site.vcenter and ground.site.vcenter.supervisor_trust,
        )
        if each and each.ca_file
    ]
    for trust in trusts:
        assert trust.ca_file is not None
        tls.context(trust)  # Untrusted says what is wrong with the file
        yield good(trust.ca_file.text, "holds certificate authorities")
    for key, spec in ground.of("kubernetes_cluster").items():
        if spec.kubeconfig.way == "file":
            path = spec.kubeconfig.sources.path(str(spec.kubeconfig.target))
            if path.exists() and path.stat().st_mode & 0o077:
                yield warning(
                    key, f"{path} can be read by others", "it holds a token or a key", f"chmod 600 {path}"
                )


def packages(ground: CheckContext) -> Iterator[Finding]:
    """The appliances are whole: every digest that there is."""
    wanted = {
        (str(spec.ova.file.path), spec.ova.sha256 or ""): spec.ova
        for spec in ground.of("bitfusion_server").values()
    }
    for asked in wanted.values():
        if not asked.file.path.exists():
            continue  # `references` tells
        try:
            found = ova.read(asked.file.path)
            ova.verify(found, lambda _: None, sha256=asked.sha256 or "")
        except BfinfraError as error:
            problem = error.problems[0]
            yield bad(asked.file.text, problem.what, problem.why, problem.next)
        else:
            yield good(
                asked.file.text,
                (
                    f"is whole ({bytes_short(found.size)}, {'its SHA-256 and ' if asked.sha256 else ''}"
                    f"{len(found.manifest)} digests of its manifest)"
                ),
            )


def tools(ground: CheckContext) -> Iterator[Finding]:
    """What builds images is installed, where the site has images to build."""
    building = [
        key
        for kind in ("client_image", "container_image")
        for key, spec in ground.of(kind).items()
        if spec.build != "never"
    ]
    if not building:
        return
    tool, why = ground.images.tool()
    if tool:
        yield good(", ".join(map(str, building)), f"{tool.name} builds them")
    else:
        yield warning(
            ", ".join(map(str, building)),
            "nothing builds images here",
            why,
            "install docker or podman, or write build: never and build by hand",
        )


def state(ground: CheckContext) -> Iterator[Finding]:
    """The journal has room, and may be written."""
    there = next(each for each in (ground.state, *ground.state.parents) if each.exists())
    free = shutil.disk_usage(there).free
    if not os.access(there, os.W_OK):
        yield bad(
            ground.state,
            "it can't be written",
            next="give yourself the right, or name another folder as BFINFRA_STATE_HOME",
        )
    elif free < LEAST:
        yield bad(
            ground.state,
            f"{bytes_short(free)} are free for the journal",
            next="free some, or name another folder as BFINFRA_STATE_HOME",
        )
    else:
        yield good(ground.state, f"{bytes_short(free)} are free for the journal")


def sizes(spec: Any) -> int:
    """Bytes of a server's disks as the OVA carries them; 0 where it can't be read: `packages` tells."""
    try:
        return sum(ova.read(spec.ova.file.path).files.values())
    except BfinfraError:
        return 0
