"""Finds which kinds of objects a cluster serves, and in which versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from bfinfra.backends.kubernetes import errors, resources
from bfinfra.backends.kubernetes.connection import Connection
from bfinfra.model.errors import Missing

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes.link import Link

T = TypeVar("T")


class Discovery(Connection):
    """Distinguishes a kind that a cluster doesn't have from one that it does not serve at the moment."""

    def serves(self, api_version: str, kind: str) -> bool:
        """Return whether the cluster knows this kind of object in this version."""
        try:
            return (api_version, kind) in resources.discovered(
                api_version, self._json(resources.path(api_version))
            )
        except (Missing, errors.NotYetServed):
            return False

    def versions(self, group: str) -> tuple[str, ...]:
        """The versions of an API group that the cluster serves, such as `v1beta1`; () if it doesn't know the
        group.
        """
        try:
            answer = self._json(f"/apis/{group}")
        except Missing:
            return ()
        listed = answer.get("versions") if isinstance(answer, dict) else None
        return tuple(
            str(each["version"]) for each in listed or () if isinstance(each, dict) and "version" in each
        )

    def _do(self, call: Callable[[Link], T]) -> T:
        """Run a request. Raises NotYetServed if the path is unknown although discovery lists it."""
        try:
            return super()._do(call)
        except errors.NotServed as error:
            if not self._is_named(*resources.named(error.path)):
                raise
            raise errors.NotYetServed(
                error.problems[0].what,
                server=self.name,
                why="the cluster names this kind of object and does not serve it at this moment",
                next="run this again; if it stays so, check the conditions of its CustomResourceDefinition",
            ) from None

    def _is_named(self, group: str, version: str, plural: str) -> bool:
        """Return whether discovery lists the resource, or the version if `plural` is ""."""
        if not plural:
            return version in self.versions(group) if version else False
        api_version = f"{group}/{version}"
        try:
            found = resources.discovered(api_version, self._json(resources.path(api_version)))
        except errors.NotYetServed:
            return True
        except Missing:
            return False
        return plural in {each.plural for each in found.values()}
