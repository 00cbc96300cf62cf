"""From files, or a chart, to the objects that a cluster shall have."""

from __future__ import annotations

import base64
import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path

from bfinfra.kinds.cluster.base.rendered.hooks import described, digest_of, of_removal, refused
from bfinfra.kinds.cluster.base.rendered.objects import (
    CLUSTER_WIDE,
    Id,
    Manifest,
    checked,
    custom,
    definitions,
    group_of,
    hooks,
    id_of,
    order,
    prepared,
)
from bfinfra.model import foreign
from bfinfra.model.records import dataclass
from bfinfra.model.redact import hide

SEPARATOR = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
LARGEST = 2 << 20  # bytes of one object, which is more than a cluster stores
SUFFIXES = (".yaml", ".yml", ".json")
TESTS = {"test", "test-success", "test-failure"}
Namespaced = Callable[[str, str], bool | None]
"""Whether a type's objects have namespaces, by apiVersion and kind; None if it is unknown."""


@dataclass(frozen=True)
class Rendering:
    """The objects, in the order of their creation. `namespace`: of the record. `unknown`: types that neither
    the cluster nor the rendering defines.
    """

    manifests: Mapping[Id, Manifest]
    namespace: str = "default"
    unknown: tuple[str, ...] = ()
    hooks: Mapping[Id, Manifest] = field(default_factory=dict)
    """The chart's hooks that the site lets run."""

    @property
    def apis(self) -> dict[tuple[str, str], str]:
        """Group and kind → apiVersion, of hooks too."""
        every = {**self.hooks, **self.manifests}
        return {each.type: manifest["apiVersion"] for each, manifest in every.items()}

    @property
    def types(self) -> tuple[str, ...]:
        """`apps/v1 Deployment`, …: what the record notes."""
        return tuple(sorted({f"{api} {kind}" for (_, kind), api in self.apis.items()}))

    @property
    def objects(self) -> tuple[Id, ...]:
        """The objects and hooks, sorted: what the record notes, too."""
        return tuple(sorted({*self.manifests, *self.hooks}))

    @property
    def digest(self) -> str:
        """The digest of all objects and hooks."""
        return digest_of((*self.manifests.values(), *self.hooks.values()))

    @property
    def removal(self) -> tuple[Manifest, ...]:
        """The hooks that run when the objects are deleted."""
        return of_removal(self.hooks.values())

    @property
    def defined(self) -> frozenset[tuple[str, str]]:
        """The types that it defines."""
        return frozenset(each for each, _, _ in definitions(self.manifests.values()))


def documents(text: str, where: str) -> tuple[Manifest, ...]:
    """The objects in a text. Raises ValueError with what is wrong; it never quotes the text."""
    found: list[Manifest] = []
    for part in SEPARATOR.split(text):
        try:
            for each in foreign.documents(part, LARGEST):
                if each is not None:
                    found += checked(each, where)
        except foreign.Unfit as error:
            raise ValueError(f"{where}: {error}") from None
    return tuple(found)


def of_files(paths: Iterable[Path]) -> tuple[Manifest, ...]:
    """The objects in files and folders, by name. Raises ValueError."""
    found: list[Manifest] = []
    for path in paths:
        files = sorted(_inside(path)) if path.is_dir() else [path]
        if not files:
            raise ValueError(f"{path} has no file that ends with {', '.join(SUFFIXES)}")
        for file in files:
            found += _file(file, _stamp(file))
    if not found:
        raise ValueError("there is no object in it")
    return tuple(found)


def _inside(folder: Path) -> Iterator[Path]:
    return (each for each in folder.rglob("*") if each.suffix in SUFFIXES and each.is_file())


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}") from None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


@functools.lru_cache(maxsize=256)
def _file(path: Path, _: tuple[int, ...]) -> tuple[Manifest, ...]:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} can't be read ({type(error).__name__})") from None
    return documents(text, str(path))


def rendering(
    found: Iterable[Manifest],
    namespace: str,
    chosen: tuple[Iterable[str], Iterable[str]],
    namespaced: Namespaced,
) -> Rendering:
    """Return the objects to send. `chosen`: hooks that are left out, and those that run, as `Job/name`.
    Raises ValueError for other hooks and for an object that is there twice.
    """
    kept_objects, run = _without_hooks(found, *(frozenset(each) for each in chosen))
    own = {of: scoped for of, scoped, _ in definitions(kept_objects)}
    manifests: dict[Id, Manifest] = {}
    unknown: dict[str, None] = {}
    for each in (*kept_objects, *run):
        scoped = _scope(each, own, namespaced)
        if scoped is None:
            unknown[f"{each['apiVersion']} {each['kind']}"] = None
        manifest = prepared(each, namespace, namespaced=scoped is not False)
        at = id_of(manifest)
        if at in manifests:
            raise ValueError(f"{at} is there twice")
        if at == Id("", "Namespace", "", namespace):
            raise ValueError(
                f"it has the namespace {namespace}, in which its record is; write another one as namespace:, "
                "such as default, or leave that Namespace out"
            )
        if each["kind"] == "Secret":
            _hide(manifest)
        manifests[at] = manifest
    ordered = sorted(manifests, key=order)
    ran = {at: manifests[at] for at in ordered if _named(manifests[at]) in {_named(each) for each in run}}
    return Rendering({at: manifests[at] for at in ordered if at not in ran}, namespace, tuple(unknown), ran)


def _scope(manifest: Manifest, own: Mapping[tuple[str, str], bool], namespaced: Namespaced) -> bool | None:
    group, kind = group_of(manifest["apiVersion"]), manifest["kind"]
    if (group, kind) in own:
        return own[group, kind]
    return namespaced(manifest["apiVersion"], kind) if custom(group) else kind not in CLUSTER_WIDE


def _named(manifest: Manifest) -> str:
    return f"{manifest['kind']}/{manifest['metadata']['name']}" if hooks(manifest) else ""


def _without_hooks(
    found: Iterable[Manifest], skipped: frozenset[str], run: frozenset[str]
) -> tuple[list[Manifest], list[Manifest]]:
    """The objects without hooks, and the hooks that run."""
    kept_objects: list[Manifest] = []
    runs: list[Manifest] = []
    undecided: list[str] = []
    for each in found:
        when, name = {*hooks(each)}, _named(each)
        if not when or when == {"crd-install"}:
            kept_objects.append(each)
        elif name in run:
            if why := refused(each):
                raise ValueError(
                    f"{name} can't run: {why}, and this is one of {', '.join(sorted(when))}; skip it"
                )
            runs.append(each)
        elif name not in skipped and not when <= TESTS:
            undecided.append(f"{name} ({described(each)})")
    if undecided:
        raise ValueError(
            f"Helm would run hooks: {', '.join(undecided)}; write the name of each under run_hooks or under "
            "skip_hooks"
        )
    if left := run - {_named(each) for each in runs}:
        raise ValueError(f"it has no hook {', '.join(sorted(left))}, which run_hooks names")
    return kept_objects, runs


def _hide(secret: Manifest) -> None:
    for value in (secret.get("data") or {}).values():
        with contextlib.suppress(ValueError):  # the server refuses what is no base64
            hide(base64.b64decode(str(value), validate=True).decode(errors="replace"))
