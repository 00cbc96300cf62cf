"""What a cassette must not hold, taken out; and the look afterwards that finds it if it is still there."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit
from xml.sax.saxutils import escape

HIDDEN = "SCRUBBED"
HIDDEN64 = base64.b64encode(HIDDEN.encode()).decode()

WITHIN = tuple(
    (re.compile(pattern.encode(), re.DOTALL), text.encode())
    for pattern, text in {
        r"<password>[^<]*</password>": f"<password>{HIDDEN}</password>",  # SOAP Login
        r"(<vcSessionCookie[^>]*>)[^<]*": rf"\g<1>{HIDDEN}",  # in the header of calls to /pbm
        # views, collectors, leases are named after their session
        r"session\[[^\]<]*\]": f"session[{HIDDEN}]",
        # OVF property values, as they are sent …
        r"(<propertyMapping>.*?<value>)[^<]*(</value>)": rf"\g<1>{HIDDEN}\g<2>",
        r"(<ovfEnvironment>)[^<]*": rf"\g<1>{HIDDEN}",
        r"(<(?:returnval|val)[^>]*xsi:type=\"(?:\w+:)?UserSession\"[^>]*><key>)[^<]*": rf"\g<1>{HIDDEN}",
        r"(<UserSession(?: [^>]*)?><key>)[^<]*": rf"\g<1>{HIDDEN}",  # in a list of sessions
        r"(<LoginResponse[^>]*><returnval>(?:<[^>]*>)?<key>)[^<]*": rf"\g<1>{HIDDEN}",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----": HIDDEN,
        r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*": HIDDEN,  # JSON Web Tokens
    }.items()
)
PROPERTY = re.compile(
    rb"<(property|info|VAppPropertyInfo)(?: [^>]*)?>.*?</\1>", re.DOTALL
)  # … and as they are read, with their keys
PROPERTY_VALUE = re.compile(rb"<(value|defaultValue)(?: [^>]*)?>[^<]+</\1>")
EXTRA = re.compile(
    rb"(<key>(?:guestinfo\.|[\w.]*(?:password|token|secret)[\w.]*)[^<]*</key>\s*<value[^>]*>)[^<]*",
    re.IGNORECASE,
)
TOKENS = ("/api/session", "/rest/com/vmware/cis/session", "/wcp/login")

LEAKS = {
    "an Authorization header": r"(?im)^\s*(?:proxy-)?authorization:",
    "a cookie": r"(?im)^\s*(?:set-)?cookie:|vmware_soap_session|JSESSIONID",
    "a session id": r"(?im)^\s*vmware-api-session-id:|session\[(?!SCRUBBED\])",
    "the key of a session": r"<vcSessionCookie[^>]*>(?!SCRUBBED<)",
    "a password": r"(?i)<password>(?!SCRUBBED<)|\"password\": ?\"(?!SCRUBBED\"|U0NSVUJCRUQ=\")[^\"]",
    "basic authentication": r"(?i)\bbasic [A-Za-z0-9+/]{8,}={0,2}",
    "a bearer token": r"(?i)\bbearer [\w.~+/-]{8,}",
    "a JSON Web Token": r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.",
    "a private key": (
        r"PRIVATE "
        r"KEY-----|LS0tLS1CRUdJTi[A-Za-z0-9+/]*UFJJVkFURSBLRVkt|BSSVZBVEUgS0VZ|QUklWQVRFIEtFWS"
    ),
    "an OVF property's value": r"<propertyMapping>(?:(?!</propertyMapping>).)*<value>(?!SCRUBBED<)[^<]",
}


def leaks(text: str) -> list[str]:
    """What kinds of secrets a cassette's text holds."""
    return [name for name, pattern in LEAKS.items() if re.search(pattern, text, re.DOTALL)]


@dataclass(frozen=True)
class Scrub:
    """`places`: real host:port → the name in the cassette; `secrets`: values that were in use while it was
    recorded.
    """

    places: Mapping[str, str]
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def request(self, request: Any) -> Any:
        """vcr.py's hook, for recording and for matching alike."""
        parts = urlsplit(request.uri)
        netloc = self.places.get(parts.netloc, parts.netloc)
        request.uri = urlunsplit(parts._replace(netloc=netloc))
        request.body = self.text(request.body or b"", parts.path)
        return request

    def response(self, response: Any) -> Any:
        """vcr.py's hook; the path isn't known here, a token alone is recognised by its shape."""
        found = self.text(response["body"]["string"], "")
        response["body"]["string"] = re.sub(
            rb'^(\{"value":)?"[0-9a-zA-Z-]{32,}"(\})?\s*$', rb'\1"' + HIDDEN.encode() + rb'"\2', found
        )
        return response

    def text(self, data: bytes, path: str) -> bytes:
        """A body without secrets, session ids and the addresses of this run."""
        for pattern, instead in WITHIN:
            data = pattern.sub(instead, data)
        data = PROPERTY.sub(
            lambda found: PROPERTY_VALUE.sub(rb"<\1>" + HIDDEN.encode() + rb"</\1>", found[0]), data
        )
        data = EXTRA.sub(rb"\g<1>" + HIDDEN.encode(), data)
        data = _secret_objects(data)
        for real, name in self.places.items():
            data = data.replace(real.encode(), name.encode())
        for form in forms(self.secrets):
            data = data.replace(form, HIDDEN.encode())
        return data

    def insist(self, text: str) -> None:
        """Nothing is written that still holds one of the secrets in use, in any of its forms, or anything
        that looks like one.
        """
        left = [form for form in forms(self.secrets) if form.decode() in text]
        assert not left, f"{len(left)} secrets of this run are still in the cassette"
        assert not leaks(text), f"the cassette holds {', '.join(leaks(text))}"


def forms(secrets: Iterable[str]) -> list[bytes]:
    """How a value may stand in a body: plain, in XML, in an address, in JSON, base64, the longest first."""
    found = {
        form
        for each in secrets
        if each
        for form in (
            each,
            escape(each),
            quote(each),
            quote(each, safe=""),
            json.dumps(each)[1:-1],
            base64.b64encode(each.encode()).decode(),
        )
    }
    return [form.encode() for form in sorted(found, key=len, reverse=True)]


def _secret_objects(data: bytes) -> bytes:
    """The values of Kubernetes Secrets, alone, in lists, and in what an apply says about one."""
    if b'"Secret' not in data:
        return data
    try:
        found = json.loads(data)
    except ValueError:
        return data
    for each in [found, *(found.get("items") or ())] if isinstance(found, dict) else ():
        if isinstance(each, dict) and (
            each.get("kind") == "Secret" or (found.get("kind") == "SecretList" and each is not found)
        ):
            _empty(each)
    return json.dumps(found, separators=(",", ":")).encode()


def _empty(secret: dict[str, Any]) -> None:
    for section, value in {"data": HIDDEN64, "stringData": HIDDEN}.items():
        if isinstance(secret.get(section), dict):
            secret[section] = dict.fromkeys(secret[section], value)
