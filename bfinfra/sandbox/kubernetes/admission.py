"""Admission: what may refuse or change an object on its way into the store."""

from __future__ import annotations

from collections.abc import Callable

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.kubernetes.cluster_state import ClusterState
from bfinfra.sandbox.kubernetes.grants import check_grants
from bfinfra.sandbox.kubernetes.identity import Tokens
from bfinfra.sandbox.kubernetes.objects import Object
from bfinfra.sandbox.kubernetes.pod_security import PodSecurity
from bfinfra.sandbox.kubernetes.target import Options, Target
from bfinfra.sandbox.kubernetes.webhooks import Webhooks, Write


class AdmittingCluster(ClusterState):
    """A cluster with its admission plug-ins and webhooks."""

    def __init__(self, name: str, version: str, clock: Clock, *, tokens: Tokens | None = None) -> None:
        super().__init__(name, version, clock, tokens=tokens)
        self.pod_security = PodSecurity(self)
        self.webhooks = Webhooks(self)

    def admit(self, write: Write, normal: Callable[[Object], Object]) -> Object:
        """The object as the admission plug-ins, then the webhooks, leave it; `normal` fills in what a change
        left out. Raises Refused if one denies it.
        """
        target, before, after, options = write.target, write.before, write.after or {}, write.options
        if options.user is not None:
            check_grants(self.authorizer, options.user, target, before, after)
        for admission in self.admissions:
            after = admission(target, before, after, options)
        return self.webhooks.mutate(Write(target, before, after, options), normal) or after

    def check(self, write: Write) -> None:
        """Raises Refused if something denies the object as it would be stored: webhooks, then the server's
        own, quotas last.
        """
        self.webhooks.validate(write)
        for validation in self.validations:
            validation(write.target, write.before, write.after or {}, write.options)

    def admit_delete(self, target: Target, stored: Object, options: Options) -> None:
        """Raises Refused if an admission plug-in or a webhook denies the deletion."""
        self.webhooks.mutate(Write(target, stored, None, options), lambda thing: thing)
        for admission in self.delete_admissions:
            admission(target, stored, options)
        self.webhooks.validate(Write(target, stored, None, options))
