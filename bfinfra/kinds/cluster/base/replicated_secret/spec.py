"""The fields of a spec for Secrets in several namespaces."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from bfinfra.kinds import capabilities
from bfinfra.kinds.cluster_locator import CLUSTERS, DnsLabel, is_named, real_name
from bfinfra.model import conflict, resource
from bfinfra.model.conflict import Taken
from bfinfra.model.context import ResolvedRef
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Key, Ref


class Spec(resource.Spec):
    """The fields that both kinds have."""

    cluster: Annotated[str, Ref(*CLUSTERS)]
    """Cluster, or supervisor namespace, that the Secret is in."""
    namespaces: Annotated[
        tuple[Annotated[DnsLabel, Ref("namespace", optional=True)], ...], Field(min_length=1)
    ]
    """Namespaces that get it: names of this site's `namespace` resources, or of existing namespaces."""

    def takes(self, name: str) -> Iterator[Taken]:
        """The Secrets in its namespaces."""
        for index, namespace in enumerate(self.namespaces):
            for secret in self.names(name):
                yield conflict.thing(
                    f"namespaces.{index}", f"Secret/{secret} in {namespace}", "cluster", self.cluster
                )

    @abstractmethod
    def names(self, name: str) -> tuple[str, ...]:
        """The names of the Secrets in each namespace, for the resource `name`."""

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """Its Secrets."""
        return (
            capabilities.secret(each, where, self.cluster, site)
            for where in self._spaces(site)
            for each in self.names(name)
        )

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """The namespaces."""
        return (capabilities.namespace(each, self.cluster, site) for each in self._spaces(site))

    def _spaces(self, site: Specs) -> Iterator[str]:
        return (capabilities.space(each, self.cluster, site) for each in self.namespaces)


def places_of(
    name: str, spec: Spec | None, key: Key, needs: Mapping[Key, ResolvedRef]
) -> list[tuple[str, str]]:
    """(namespace, Secret) that a spec wants in this cluster."""
    if spec is None or not is_named(spec.cluster, key):
        return []
    spaces = [real_name(space, spec.cluster, needs.get(Key("namespace", space))) for space in spec.namespaces]
    return [(space, secret) for space in spaces for secret in spec.names(name)]
