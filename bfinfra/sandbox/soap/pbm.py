"""The handler of vCenter's API for storage policies, POST /pbm: policies that ask for tags. Source:
pbm.profile.ProfileManager, pbm.placement.PlacementSolver.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pyVmomi import pbm as types

from bfinfra.sandbox.handler import Handler, Request, Response
from bfinfra.sandbox.inventory.hosts import now
from bfinfra.sandbox.inventory.permissions import ROOT
from bfinfra.sandbox.inventory.vmtypes import moid, support, vmodl
from bfinfra.sandbox.soap import wire
from bfinfra.sandbox.soap.dispatch import Call
from bfinfra.sandbox.soap.faulting import Faulting
from bfinfra.sandbox.soap.handler import XML, cookie

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.store import Inventory
    from bfinfra.sandbox.rest.state import Info, RestState
    from bfinfra.sandbox.sessions import Sessions

pbm: Any = types
NS, OLDEST = "urn:pbm", "pbm.version.v7_0"
REQUIREMENT, STORAGE = "REQUIREMENT", "STORAGE"
TAGS = "http://www.vmware.com/storage/tag"
WRITES = ("PbmCreate", "PbmUpdate", "PbmDelete")
Method = Callable[[Call, "RestState", Any], Any]


def pbm_handler(
    inventory: Inventory, sessions: Sessions, state: RestState, faults: Any, tally: Any
) -> Handler:
    """The handler. The caller is known by the session's key in the envelope's header, or by the cookie."""
    faulting = Faulting(faults, tally)
    newest = support.versionMap.get(f"pbm/{inventory.world.vcenter.version}", OLDEST)

    def handler(request: Request) -> Response:
        if request.path.rstrip("/") not in ("/pbm", "/pbm/sdk") or request.method != "POST":
            return Response(
                404, f"nothing at {request.method} {request.path}".encode(), {"content-type": "text/plain"}
            )
        version = _version(request, newest)
        try:
            root = wire.envelope(request.body.read())
            spoken = wire.parse(root, version, NS)
            session = sessions.find(
                root.findtext(f"{{{wire.SOAP}}}Header/{{*}}vcSessionCookie") or cookie(request)
            )
            content = _invoked(
                Call(inventory, sessions, session, version, spoken.method), spoken, state, faulting
            )
        except wire.Malformed as error:
            return Response(500, wire.fault(vmodl.fault.InvalidRequest(msg=str(error)), version), XML)
        except vmodl.MethodFault as error:
            return Response(500, wire.fault(error, version), XML)
        except Exception as error:  # noqa: BLE001 - a defect of the sandbox must reach the client as a fault, and the log in full
            return Response(500, wire.defect(error, "a policy's call", version), XML)
        return Response(200, wire.answer(spoken.method, content, NS), XML)

    return handler


def _version(request: Request, newest: str) -> str:
    asked = support.versionMap.get(request.headers.get("soapaction", "").strip('"').rpartition(":")[2])
    return asked if asked and asked.startswith("pbm.") and support.IsChildVersion(newest, asked) else newest


def _invoked(call: Call, spoken: wire.Invocation, state: RestState, faulting: Faulting) -> str:
    ref = spoken.this
    method = METHODS.get(spoken.method)
    try:
        info = support.GetWsdlMethod(NS, spoken.method).info
    except KeyError:
        method = None
    if method is None:
        raise vmodl.fault.MethodNotFound(
            receiver=ref, method=spoken.method, msg=f"The sandbox does not implement {spoken.method}"
        )
    if info.privId != "System.Anonymous":
        call.need(info.privId, call.inventory.objects[ROOT])
    given = wire.arguments(spoken, info.params)
    this: Any = SimpleNamespace(moid=moid(ref), name="", ref=ref)
    with faulting.during(call, this, given, writes=spoken.method in WRITES), state.lock:
        result = method(call, state, SimpleNamespace(**given))
    return (
        ""
        if result is None
        else wire.written("returnval", result, info.result, call.version, info.resultFlags)
    )


def _content(call: Call, state: RestState, args: Any) -> Any:  # noqa: ARG001 - the form of all
    return pbm.ServiceInstanceContent(
        aboutInfo=pbm.AboutInfo(
            name="PBM", version="2.0", instanceUuid=call.inventory.world.vcenter.instance_uuid
        ),
        sessionManager=pbm.auth.SessionManager("SessionManager"),
        capabilityMetadataManager=pbm.capability.CapabilityMetadataManager("CapabilityMetadataManager"),
        profileManager=pbm.profile.ProfileManager("ProfileManager"),
        complianceManager=pbm.compliance.ComplianceManager("complianceManager"),
        placementSolver=pbm.placement.PlacementSolver("placementSolver"),
    )


def _query(call: Call, state: RestState, args: Any) -> Any:  # noqa: ARG001 - the form of all
    fits = args.resourceType.resourceType == STORAGE and args.profileCategory in (None, REQUIREMENT)
    return [pbm.profile.ProfileId(uniqueId=each) for each in state.policies()] if fits else []


def _retrieve(call: Call, state: RestState, args: Any) -> Any:
    if not args.profileIds:
        raise vmodl.fault.InvalidArgument(
            invalidProperty="profileIds", msg="A specified parameter was not correct: profileIds"
        )
    return [_profile(call, state, each.uniqueId) for each in args.profileIds]


def _profile(call: Call, state: RestState, identity: str) -> Any:
    if identity not in state.policies():
        raise vmodl.fault.InvalidArgument(
            invalidProperty="profileId",
            msg=f"A specified parameter was not correct: no profile {identity[:80]}",
        )
    name, policy = state.policies()[identity]
    made = state.profiles.get(identity)
    constraints = _read(made["constraints"]) if made else _vsan()
    moment = now(call.inventory)
    return pbm.profile.CapabilityBasedProfile(
        profileId=pbm.profile.ProfileId(uniqueId=identity),
        name=name,
        description=policy.description,
        creationTime=moment,
        createdBy="Administrator",
        lastUpdatedTime=moment,
        lastUpdatedBy="Administrator",
        profileCategory=REQUIREMENT,
        resourceType=pbm.profile.ResourceType(resourceType=STORAGE),
        constraints=constraints,
        generationId=0,
        isDefault=False,
    )


def _vsan() -> Any:
    """Return the rules of the world's own policies: vSAN decides which datastores match them."""
    failures = pbm.capability.PropertyInstance(id="hostFailuresToTolerate", value=1)
    rule = pbm.capability.CapabilityInstance(
        id=pbm.capability.CapabilityMetadata.UniqueId(namespace="VSAN", id="hostFailuresToTolerate"),
        constraint=[pbm.capability.ConstraintInstance(propertyInstance=[failures])],
    )
    return pbm.profile.SubProfileCapabilityConstraints(
        subProfiles=[
            pbm.profile.SubProfileCapabilityConstraints.SubProfile(name="Rule-Set 1", capability=[rule])
        ]
    )


def _create(call: Call, state: RestState, args: Any) -> Any:
    spec = args.createSpec
    _free(state, spec.name, "")
    _check(state, spec.constraints)
    identity = call.inventory.new_uuid(call.inventory.new_id("profile "))
    state.profiles[identity] = {
        "name": spec.name,
        "description": spec.description or "",
        "constraints": _text(spec.constraints, call.version),
    }
    return pbm.profile.ProfileId(uniqueId=identity)


def _update(call: Call, state: RestState, args: Any) -> None:
    made, spec = _made(state, args.profileId.uniqueId), args.updateSpec
    if spec.name is not None:
        _free(state, spec.name, args.profileId.uniqueId)
        made["name"] = spec.name
    if spec.constraints is not None:
        _check(state, spec.constraints)
        made["constraints"] = _text(spec.constraints, call.version)
    made["description"] = made["description"] if spec.description is None else spec.description


def _delete(call: Call, state: RestState, args: Any) -> Any:  # noqa: ARG001 - the form of all
    """Answers with what could not be deleted; an unknown id is no error."""
    failed = []
    for each in args.profileId:
        users = [
            name
            for name, info in state.namespaces.items()
            if any(s["policy"] == each.uniqueId for s in info["storage_specs"])
        ]
        if users:
            words = f"The storage policy is in use by namespace {', '.join(users)}."
            failed.append(
                pbm.profile.ProfileOperationOutcome(
                    profileId=each, fault=pbm.fault.ResourceInUse(msg=words, name=users[0])
                )
            )
        else:
            state.profiles.pop(each.uniqueId, None)
    return failed


def _requirements(call: Call, state: RestState, args: Any) -> Any:
    """Every datastore asked of; one that doesn't fit comes with a fault."""
    wanted = [
        each.profileId.uniqueId
        for each in args.placementSubjectRequirement
        if isinstance(each, pbm.placement.CapabilityProfileRequirement)
    ]
    hubs = args.hubsToSearch or [
        pbm.placement.PlacementHub(hubType="Datastore", hubId=each.moid)
        for each in call.inventory.datastores()
    ]

    def found(hub: Any) -> Any:
        wrong = (
            []
            if all(_fits(call, state, each, hub.hubId) for each in wanted)
            else [pbm.fault.CompatibilityCheckFault(hub=hub, msg="The datastore does not have the tags.")]
        )
        return pbm.placement.CompatibilityResult(hub=hub, error=wrong)

    return [found(hub) for hub in hubs]


def _fits(call: Call, state: RestState, identity: str, datastore: str) -> bool:
    made = state.profiles.get(identity)
    if made is None:
        known = state.policies().get(identity)
        return known is not None and call.inventory.objects[datastore].name in known[1].datastores
    names = {
        (state.categories[each["category_id"]]["name"], each["name"]): tag for tag, each in state.tags.items()
    }
    held = {tag for tag, on in state.attached.items() if any(each["id"] == datastore for each in on)}
    return all(
        any(names.get((category, tag)) in held for tag in tags)
        for category, tags in _rules(_read(made["constraints"]))
    )


def _rules(constraints: Any) -> list[tuple[str, list[str]]]:
    """Categories with the tags of which one is wanted."""
    asked = [
        each for part in constraints.subProfiles for each in part.capability if each.id.namespace == TAGS
    ]
    return [
        (
            each.id.id,
            [str(tag) for one in each.constraint for p in one.propertyInstance for tag in p.value.values],
        )
        for each in asked
    ]


def _check(state: RestState, constraints: object) -> None:
    """Raises InvalidArgument for a category or tag that does not exist."""
    if not isinstance(constraints, pbm.profile.SubProfileCapabilityConstraints):
        raise vmodl.fault.InvalidArgument(
            invalidProperty="constraints",
            msg="A specified parameter was not correct: constraints of sub-profiles are wanted",
        )
    known = {(state.categories[each["category_id"]]["name"], each["name"]) for each in state.tags.values()}
    for category, tags in _rules(constraints):
        for tag in tags:
            if (category, tag) not in known:
                raise vmodl.fault.InvalidArgument(
                    invalidProperty="constraints",
                    msg=(
                        f"A specified parameter was not correct: there is no tag {tag} in a category "
                        f"{category}"
                    ),
                )


def _free(state: RestState, name: str, but: str) -> None:
    if any(other == name and identity != but for identity, (other, _) in state.policies().items()):
        raise pbm.fault.DuplicateName(
            name=name, msg=f"A storage policy with the name '{name}' already exists."
        )


def _made(state: RestState, identity: str) -> Info:
    """A policy that was created through the API: those of the world file can't be changed."""
    if identity not in state.profiles:
        raise vmodl.fault.InvalidArgument(
            invalidProperty="profileId", msg="A specified parameter was not correct: profileId"
        )
    return state.profiles[identity]


def _text(constraints: object, version: str) -> str:
    """As the state keeps it."""
    return wire.written("constraints", constraints, pbm.profile.CapabilityConstraints, version)


def _read(text: str) -> Any:
    spaces = f'xmlns="{NS}" xmlns:xsi="{wire.XSI}" xmlns:xsd="{wire.XSD}"'
    return wire.value(
        wire.envelope(f"<root {spaces}>{text}</root>".encode())[0], pbm.profile.CapabilityConstraints
    )


METHODS: dict[str, Method] = {
    "PbmRetrieveServiceContent": _content,
    "PbmQueryProfile": _query,
    "PbmRetrieveContent": _retrieve,
    "PbmCreate": _create,
    "PbmUpdate": _update,
    "PbmDelete": _delete,
    "PbmCheckRequirements": _requirements,
}
