"""Storage policies that require tags: listed over REST, the rest over SOAP's /pbm. Source:
pbm.profile.ProfileManager; com.vmware.vcenter.storage.Policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from bfinfra.model.errors import Malformed, Missing, Rejected
from bfinfra.model.records import dataclass
from bfinfra.model.redact import hide

if TYPE_CHECKING:
    from pyVmomi import vim

    from bfinfra.backends.vcenter.rest import Rest
    from bfinfra.backends.vcenter.session import SoapSession

POLICIES = "/api/vcenter/storage/policies"
NAMESPACE, PROPERTY = "http://www.vmware.com/storage/tag", "com.vmware.storage.tag.{}.property"
VERSION = "pbm.version.v7_0"  # the oldest version that bfinfra supports; these calls are older still
COOKIE = "vmware_soap_session"


@dataclass(frozen=True, slots=True)
class Policy:
    """`tags`: category → tags, of which a datastore must have one for each category; `others`: whether it
    requires anything else.
    """

    name: str
    description: str = ""
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    others: bool = False
    id: str = ""


class StoragePolicies:
    """The policies of one vCenter. Raises RemoteError."""

    def __init__(self, session: SoapSession, rest: Rest) -> None:
        self._session, self._rest = session, rest

    def list(self) -> Sequence[Policy]:
        """Name, description and id of all, in one read."""
        try:
            return [
                Policy(str(p["name"]), str(p.get("description") or ""), id=str(p["policy"]))
                for p in self._rest.get(POLICIES)
            ]
        except (KeyError, TypeError, AttributeError):
            raise Malformed(
                "the storage policies can't be read", server=self._rest.server, why="no list of names and ids"
            ) from None

    def read(self, identities: Iterable[str]) -> Sequence[Policy]:
        """These policies in detail."""
        wanted = list(identities)
        return (
            self._session.read(
                lambda content: [_policy(each) for each in _manager(content).RetrieveContent(_ids(wanted))]
            )
            if wanted
            else []
        )

    def read_existing(self, listed: Iterable[Policy]) -> Sequence[Policy]:
        """These policies in detail, without those deleted meanwhile, for which vCenter refuses all
        together.
        """
        wanted = [each.id for each in listed]
        try:
            return self.read(wanted)
        except Rejected:
            return [found for each in wanted for found in self._if_standing(each)]

    def _if_standing(self, identity: str) -> Sequence[Policy]:
        try:
            return self.read([identity])
        except Rejected:
            return ()

    def create(self, wanted: Policy) -> str:
        """Make a policy; returns its id. Raises Exists if the name is taken."""
        pbm = _types()
        spec = pbm.profile.CapabilityBasedProfileCreateSpec(
            name=wanted.name,
            description=wanted.description,
            category="REQUIREMENT",
            resourceType=pbm.profile.ResourceType(resourceType="STORAGE"),
            constraints=_constraints(wanted),
        )
        return str(self._session.write(lambda content: _manager(content).Create(spec)).uniqueId)

    def update(self, wanted: Policy, *, tags: bool) -> None:
        """Set the description, and with `tags` the tags, in place of all rules that are there."""
        spec = _types().profile.CapabilityBasedProfileUpdateSpec(
            description=wanted.description, constraints=_constraints(wanted) if tags else None
        )
        self._session.write(lambda content: _manager(content).Update(_ids([wanted.id])[0], spec))

    def delete(self, identity: str) -> None:
        """Delete a policy. One that is already gone is fine. Raises Rejected while something uses it."""
        from bfinfra.backends.vcenter import faults  # noqa: PLC0415 - reading a site loads no pyVmomi

        failed = [
            each.fault
            for each in self._session.write(lambda content: _manager(content).Delete(_ids([identity]))) or ()
            if each.fault is not None
        ]
        if failed:
            error = faults.of_fault(failed[0], "the storage policy can't be deleted", self._rest.server)
            if not isinstance(error, Missing):
                raise (
                    error
                    if not type(failed[0]).__name__.endswith("ResourceInUse")
                    else Rejected(
                        "the storage policy is in use",
                        server=self._rest.server,
                        why=error.problems[0].why,
                        next="remove it from its users first",
                    )
                )


def _types() -> Any:
    from pyVmomi import pbm  # noqa: PLC0415 - reading a site loads no pyVmomi

    return pbm


def _manager(content: vim.ServiceInstanceContent) -> Any:
    """The manager of policies. SPBM requires the session of `content` in the header of each call."""
    from bfinfra.backends.vcenter import refs, soap  # noqa: PLC0415 - as above

    main = refs.stub(content)
    cookie = (main.http.cookies.get(COOKIE) or "").strip('"')
    hide(cookie, passing=True)
    stub = soap.Stub(main.http, main.server, VERSION, "/pbm", {"vcSessionCookie": cookie})
    return _types().ServiceInstance("ServiceInstance", stub).RetrieveContent().profileManager


def _ids(identities: Iterable[str]) -> Any:
    return [_types().profile.ProfileId(uniqueId=each) for each in identities]


def _constraints(wanted: Policy) -> Any:
    """One rule for each category, all in one set."""
    pbm = _types()

    def rule(category: str, tags: tuple[str, ...]) -> Any:
        one = pbm.capability.PropertyInstance(
            id=PROPERTY.format(category), value=pbm.capability.types.DiscreteSet(values=list(tags))
        )
        return pbm.capability.CapabilityInstance(
            id=pbm.capability.CapabilityMetadata.UniqueId(namespace=NAMESPACE, id=category),
            constraint=[pbm.capability.ConstraintInstance(propertyInstance=[one])],
        )

    sub = pbm.profile.SubProfileCapabilityConstraints
    rules = [rule(category, tags) for category, tags in sorted(wanted.tags.items())]
    return sub(subProfiles=[sub.SubProfile(name="Tag based placement", capability=rules)])


def _policy(profile: Any) -> Policy:
    tags: dict[str, tuple[str, ...]] = {}
    parts = getattr(profile.constraints, "subProfiles", None) or ()
    others = len(parts) != 1
    for each in (rule for part in parts for rule in part.capability):
        values = [
            value
            for one in each.constraint
            for p in one.propertyInstance
            for value in getattr(p.value, "values", None) or ()
        ]
        if each.id.namespace == NAMESPACE and values:
            tags[str(each.id.id)] = tuple(sorted({*tags.get(str(each.id.id), ()), *map(str, values)}))
        else:
            others = True
    return Policy(
        str(profile.name), str(profile.description or ""), tags, others, str(profile.profileId.uniqueId)
    )
