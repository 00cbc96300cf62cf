"""Refusals before the first write: what the namespace doesn't offer, what a disk can't become, what doesn't
fit. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bfinfra.kinds.supervisor.base.offers import Offer, check_classes
from bfinfra.kinds.supervisor.service_vm import manifest as form
from bfinfra.kinds.supervisor.service_vm.catalog import Found, ServiceVmFacts
from bfinfra.kinds.supervisor.service_vm.manifest import Image
from bfinfra.kinds.supervisor.service_vm.spec import Spec
from bfinfra.kinds.supervisor.service_vm.state import State
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.units import BINARY, bytes_text, megahertz_text


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
    _fits(name, spec, context, facts)


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


def _fits(name: str, spec: Spec, context: PlanContext, facts: ServiceVmFacts) -> None:
    """Check that its machines' reservations and disks fit the namespace's limits and the hosts."""
    space = facts.environment.spaces.get(spec.namespace)
    if space is None:
        return
    others = [
        other
        for peer, (other, _) in context.siblings.items()
        if peer != name and other is not None and other.namespace == spec.namespace
    ]
    room = facts.environment.capacities.get(space.cluster)
    for what, limit, capacity, text in (
        ("memory", space.memory, room.memory if room else None, bytes_text),
        ("cpu", space.cpu, room.cpu if room else None, megahertz_text),
    ):
        mine = _reserved(spec, what, facts, room.core if room else 0)
        rest = sum(_reserved(each, what, facts, room.core if room else 0) for each in others)
        for most, who in ((limit, f"the namespace {spec.namespace} may use"), (capacity, "its hosts have")):
            if most is not None and mine and mine + rest > most:
                raise Refusal(
                    f"it reserves {text(mine)} of {what}; {who} {text(most)}",
                    field="vm_class",
                    why=f"the site's other machines there reserve {text(rest)}" if rest else "",
                    next=f"choose a smaller class, or raise the namespace's limits.{what}",
                )
    _stores(spec, others, space.storage, space.total_storage)


def _reserved(spec: Spec, what: str, facts: ServiceVmFacts, core: int) -> int:
    found = facts.environment.classes.get(spec.vm_class)
    if found is None:
        return 0
    if what == "memory":
        return found.memory * found.memory_reservation // 100
    return found.cpus * core * found.cpu_reservation // 100


def _stores(spec: Spec, others: Sequence[Spec], limits: Any, total: int | None) -> None:
    mine, rest = _volumes(spec), Counter[str]()
    for each in others:
        rest.update(_volumes(each))
    checked = [(name, size, rest[name], limits.get(name)) for name, size in mine.items()]
    checked.append(("", sum(mine.values()), sum(rest.values()), total))
    for name, size, besides, most in checked:
        if most is not None and size and size + besides > most:
            of = f" of {name}" if name else ""
            raise Refusal(
                f"its disks take {bytes_text(size)}{of}; the namespace {spec.namespace} may use "
                f"{bytes_text(most)}",
                field="disks",
                why=f"the site's other machines there take {bytes_text(besides)}" if besides else "",
                next="write smaller disks, or raise the namespace's storage",
            )


def _volumes(spec: Spec) -> Counter[str]:
    found = Counter[str]()
    for disk in spec.disks.values():
        found[disk.storage_class or spec.storage_class] += disk.size
    return found


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
