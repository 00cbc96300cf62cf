"""Which kinds that a site doesn't use have something of it in its vCenter, as what is read anyway shows: the
definitions of attributes, and the marks of all VMs. The others need not be imported, nor read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from bfinfra.kinds.attributes import ATTRIBUTES
from bfinfra.kinds.vcenter.base.machine.notes import MARKS, OF_ALL
from bfinfra.model.mark import Mark
from bfinfra.model.reading import Reading

if TYPE_CHECKING:
    from bfinfra.backends.survey_cache import SurveyCache
    from bfinfra.backends.vcenter import VCenter
    from bfinfra.backends.vcenter.vm import Brief

ON_MACHINES = frozenset({"bitfusion_vm", "virtual_machine"})
"""Kinds whose marks are in VMs."""
SHOWN = ON_MACHINES | ATTRIBUTES.keys()
"""The kinds that need not be asked where nothing shows them."""
DEFINITIONS: Reading[Mapping[int, str]] = Reading("CustomFieldsManager", ("field",))
READER = "marked_kinds"


class MarkedKinds:
    """Asks in the background, and shares the answers with the kinds."""

    def __init__(self, vcenter: VCenter, cache: SurveyCache, site: str) -> None:
        self._vcenter, self._cache, self._site = vcenter, cache, site
        cache.prefetch(DEFINITIONS, READER, self._definitions)
        cache.prefetch(MARKS, READER, self._machines)

    def __call__(self) -> Collection[str]:
        """Those of `SHOWN` that have something. Raises RemoteError."""
        defined = self._cache.read(DEFINITIONS, READER, self._definitions).values()
        machines = self._cache.read(MARKS, READER, self._machines)
        noted = {
            mark.kind
            for machine in machines
            for text in (machine.mark, *machine.also)
            if (mark := Mark.owner_in(text)) and mark.site == self._site
        }
        return {
            *ON_MACHINES.intersection(noted),
            *(kind for kind, first in ATTRIBUTES.items() if any(each.startswith(first) for each in defined)),
        }

    def _definitions(self) -> Mapping[int, str]:
        from bfinfra.backends.vcenter.attributes import defined

        return self._vcenter.session.read(self._vcenter.defined or defined)

    def _machines(self) -> list[Brief]:
        return self._vcenter.machines.survey(*OF_ALL)
