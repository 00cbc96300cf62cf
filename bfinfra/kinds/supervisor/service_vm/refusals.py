"""Refusals before the first write: what the namespace doesn't offer, what a disk can't become, what doesn't
fit. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from bfinfra.kinds.supervisor.base import fit
from bfinfra.kinds.supervisor.base.offers import Offer, check_classes
from bfinfra.kinds.supervisor.service_vm import manifest as form
from bfinfra.kinds.supervisor.service_vm.catalog import Found, ServiceVmFacts
from bfinfra.kinds.supervisor.service_vm.manifest import Image
from bfinfra.kinds.supervisor.service_vm.spec import Spec
from bfinfra.kinds.supervisor.service_vm.state import State
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.units import BINARY


def check(name: str, spec: Spec, state: State | None, context: PlanContext) -> None:
    """Check all but the image. Raises Refusal."""
    facts: ServiceVmFacts = context.facts or ServiceVmFacts()
    home = context.needs["namespace"]
    if facts.apis.get(spec.namespace) == "":
        raise Refusal(
            "its supervisor has no VM Service of a version that bfinfra writes",
            field="namespace",
            why=f"it serves none of {', '.join(form.VERSIONS)} of {form.GROUP}",
            next="update the supervisor to vSphere 8.0.2 or later",
        )
    if state is None and (taken := facts.taken.get(name)):
        raise Refusal(
            f"{taken[0]} exists already, and bfinfra did not make it",
            why="the machine's own would have this name",
            next="choose another name for the machine, or delete it",
        )
    check_classes(spec, facts.offers.get(spec.namespace, Offer()), home.spec)
    fit.check(spec, context, facts.environment)


def check_parts(name: str, spec: Spec, state: State) -> None:
    """Raises Refusal for parts of other resources, and for disks that can't be changed so."""
    for disk, given in spec.disks.items():
        claim = state.claims.get(disk)
        if claim is None or claim.going:
            continue
        if not state.has(claim.maker):
            raise _theirs(f"{form.CLAIM} {form.claim_name(name, disk)}", f"disks.{disk}")
        now, want = form.disk_view(claim.body), form.disk_wanted(given, spec)
        if now["storage_class"] != want["storage_class"]:
            raise Refusal(
                f"disk {disk} can't move to another storage class",
                field=f"disks.{disk}.storage_class" if given.storage_class else "storage_class",
                why=f"it is of {now['storage_class']}",
                next="make another disk, move the data, delete this one",
            )
        if _bytes(now["size"]) > given.size:
            raise Refusal(
                f"disk {disk} can't shrink",
                field=f"disks.{disk}.size",
                why=f"it has {now['size']}",
                next=f"write {now['size']}",
            )
    if spec.expose and state.service is not None and not state.has(state.service_maker):
        raise _theirs(f"{form.SERVICE} {name}", "expose")


def check_adopted(spec: Spec, state: State, context: PlanContext) -> None:
    """Raises Refusal if a machine to adopt has another image than the site, by its object."""
    if state.mark is None or state.mark.applied is not None:
        return
    wanted = image(spec, context)
    if wanted is not None and wanted[1] != form.image_of(state.body)[1]:
        raise Refusal(
            f"the machine is not of {spec.image.item} of {spec.image.library}",
            field="image",
            why=f"it is of {form.image_of(state.body)[1]}, and that would be {wanted[1]}",
            next="write the image that it is of",
        )


def image(spec: Spec, context: PlanContext) -> Image | None:
    """The image's object; None if it is still to come with what this site makes first. Raises Refusal."""
    facts: ServiceVmFacts = context.facts or ServiceVmFacts()
    listed = facts.images.get(spec.namespace)
    item, library = spec.image.item, spec.image.library
    if listed is None:
        return None
    there = [each for each in listed if each.library in (library, "")]
    found = [each for each in there if each.item == item]
    if len({each.image for each in found}) > 1:
        raise Refusal(
            f"{library} has several images {item}",
            field="image.item",
            why=f"they are {', '.join(sorted(each.image[1] for each in found))}",
            next="give the items names of their own",
        )
    if not found:
        return _absent(spec, listed, there, context)
    if found[0].missing:
        raise Refusal(
            f"the image {item} of {library} is not ready",
            field="image.item",
            why=f"{found[0].image[1]}: {found[0].missing}",
            next="wait until the library is synchronised, then apply again",
        )
    return found[0].image


def _absent(
    spec: Spec, listed: Sequence[Found], there: Sequence[Found], context: PlanContext
) -> Image | None:
    """None if the library shows nothing yet, and this site gives it to the namespace; Refusal else."""
    home = context.needs["namespace"]
    promised = home.spec is not None and spec.image.library in home.spec.content_libraries
    if promised and not there:
        return None
    names = sorted({each.item for each in there})
    elsewhere = sorted({each.library for each in listed if each.item == spec.image.item and each.library})
    raise Refusal(
        f"the namespace {spec.namespace} shows no item {spec.image.item} of {spec.image.library}",
        field="image.item" if there else "image.library",
        why=f"there are: {', '.join(names)}"
        if names
        else f"{', '.join(elsewhere)} has one"
        if elsewhere
        else "the namespace shows nothing of this library",
        next="write one of these" if names else f"add it to the content_libraries of {home.key}",
    )


def _theirs(what: str, field: str) -> Refusal:
    return Refusal(
        f"{what} exists already, and bfinfra did not make it",
        field=field,
        why="bfinfra never changes an object without its mark",
        next="choose another name, or delete it",
    )


def _bytes(text: object) -> int:
    number = str(text).rstrip("KMGTiB")
    unit = str(text)[len(number) :]
    return int(number) * BINARY[unit] if number.isdigit() and unit in BINARY else 0
