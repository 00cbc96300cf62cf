from __future__ import annotations

import httpx2
import pytest

from bfinfra.backends import writes


def soap(method: str) -> httpx2.Request:
    body = (
        f'<?xml version="1.0"?><soapenv:Envelope><soapenv:Body>\n<{method} '
        f'xmlns="urn:vim25"><_this/></{method}></soapenv:Body></soapenv:Envelope>'
    )
    return httpx2.Request(
        "POST", "https://vc/sdk", content=body.encode(), headers={"content-type": "text/xml; charset=UTF-8"}
    )


@pytest.mark.parametrize(
    "method",
    [
        "Login",
        "Logout",
        "RetrievePropertiesEx",
        "WaitForUpdatesEx",
        "CreateContainerView",
        "ParseDescriptor",
        "QueryConfigTarget",
    ],
)
def test_soap_methods_that_only_read_are_known_by_name(method):
    assert not writes.writes(soap(method))
    assert writes.name(soap(method)) == method


@pytest.mark.parametrize(
    "method",
    [
        "ReconfigVM_Task",
        "ImportVApp",
        "HttpNfcLeaseComplete",
        "SetField",
        "UpdatePassthruConfig",
        "NeverHeardOf",
    ],
)
def test_every_other_soap_method_writes(method):
    assert writes.writes(soap(method))


def test_a_body_that_only_looks_like_soap_writes():
    assert writes.writes(
        httpx2.Request("POST", "https://vc/sdk", content=b"Login", headers={"content-type": "text/xml"})
    )


@pytest.mark.parametrize(
    ("method", "path", "write"),
    [
        ("GET", "/api/vcenter/namespaces/instances", False),
        ("HEAD", "/x", False),
        ("POST", "/api/session", False),
        ("DELETE", "/api/session", False),
        ("POST", "/wcp/login", False),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", False),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", True),
        ("POST", "/api/vcenter/namespaces/instances", True),
        ("DELETE", "/api/session/other", True),
        ("PATCH", "/api/v1/namespaces/x/secrets/y", True),
        ("PUT", "/nfc/disk", True),
        ("GET", "/api/v1/namespaces/x/pods/y/exec", True),
        ("GET", "/api/v1/namespaces/x/pods/y/log", False),
    ],
)
def test_other_requests_by_method_and_path(method, path, write):
    assert writes.writes(httpx2.Request(method, f"https://vc{path}")) is write
