"""Decides which requests write: all but GET, HEAD and those named here."""

from __future__ import annotations

import re

import httpx2

SOAP_READS = frozenset(
    """
    CancelRetrievePropertiesEx CancelWaitForUpdates CheckPrivileges ContinueRetrievePropertiesEx
    CreateContainerView CreateFilter CreateImportSpec CreatePropertyCollector CurrentTime
    DestroyPropertyCollector DestroyPropertyFilter DestroyView Fetch FetchUserPrivilegeOnEntities
    FindAllByUuid FindByInventoryPath FindByUuid FindChild HasPrivilegeOnEntities HasUserPrivilegeOnEntities
    HttpNfcLeaseGetManifest Login Logout ParseDescriptor PbmCheckCompatibility PbmCheckRequirements
    PbmQueryAssociatedProfile PbmQueryProfile PbmRetrieveContent PbmRetrieveServiceContent
    QueryAvailablePerfMetric QueryConfigOption QueryConfigOptionEx QueryConfigTarget QueryEvents
    QueryOptions QueryPerf QueryPerfProviderSummary RetrieveContent RetrieveProperties RetrievePropertiesEx
    RetrieveServiceContent RetrieveUserGroups RetrieveVendorDeviceGroupInfo SessionIsActive
    WaitForUpdatesEx fetchSoftwarePackages
    """.split()  # noqa: SIM905 - forty names read better as a text
)
POST_READS = re.compile(
    r"/(wcp/login|api/session|rest/com/vmware/cis/session"
    r"|apis/authorization\.k8s\.io/v1/(selfsubjectaccessreviews|selfsubjectrulesreviews))"
)
FINDS = re.compile(
    rb"/api/(content/library(/item)?\?action=find|vcenter/ovf/library-item/[^/?]+\?action=filter"
    rb"|cis/tagging/tag\?action=list-tags-for-category|cis/tagging/tag-association\?action=list-attached-objects-on-tags)"
)
LOGOUTS = re.compile(r"Logout|DELETE /(api/session|rest/com/vmware/cis/session)")
STREAMS = re.compile(r"/(exec|attach|portforward)$")  # Kubernetes opens these by GET, and they act
SOAP_METHOD = re.compile(rb"<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)")


def name(request: httpx2.Request) -> str:
    """The name of a request: the SOAP method, else the HTTP method and path."""
    return soap_method(request) or f"{request.method} {request.url.path}"


def soap_method(request: httpx2.Request) -> str:
    """The SOAP method, or "" for a request that isn't SOAP."""
    if request.method != "POST" or not request.headers.get("content-type", "").startswith("text/xml"):
        return ""
    found = SOAP_METHOD.search(request.read()[:4096])
    return found[1].decode() if found else ""


def writes(request: httpx2.Request) -> bool:
    """Return whether the request may change anything but its own session."""
    path = request.url.path
    if request.method in ("GET", "HEAD"):
        return bool(STREAMS.search(path))
    if method := soap_method(request):
        return method not in SOAP_READS
    if request.method == "POST":
        return not (POST_READS.fullmatch(path) or FINDS.fullmatch(request.url.raw_path))
    return not ends_session(f"{request.method} {path}")


def ends_session(name: str) -> bool:
    """Return whether the request only logs out."""
    return bool(LOGOUTS.fullmatch(name))
