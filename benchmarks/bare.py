"""The least that reads a vCenter over HTTP and makes trees of its answers: `http.client` and lxml, page after
page, no values made, nothing compared.

echo '{"VirtualMachine": ["name", …], …}' | python benchmarks/bare.py HOST:PORT USER PASSWORD    prints how
many objects and bytes it read
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
from xml.sax.saxutils import escape

from lxml import etree

ENVELOPE = (
    '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope '
    'xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><{method} '
    'xmlns="urn:vim25">{body}</{method}></soapenv:Body></soapenv:Envelope>'
)
PAGE = 500  # objects, as many as bfinfra asks for
COLLECTOR = '<_this type="PropertyCollector">propertyCollector</_this>'
WALK = (
    "<selectSet "
    'xsi:type="TraversalSpec"><name>view</name><type>ContainerView</type><path>view</path><skip>false</skip></selectSet>'
)


class Wire:
    """One connection, and the session's cookie."""

    def __init__(self, address: str) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = (
            False,
            ssl.CERT_NONE,
        )  # a vcsim of the benchmark's own on loopback
        self.connection = http.client.HTTPSConnection(address, context=context)
        self.headers = {"Content-Type": "text/xml; charset=UTF-8", "SOAPAction": "urn:vim25/8.0.3.0"}
        self.bytes = 0

    def ask(self, method: str, body: str) -> etree._Element:
        """The answer's one element."""
        self.connection.request(
            "POST", "/sdk", ENVELOPE.format(method=method, body=body).encode(), self.headers
        )
        answer = self.connection.getresponse()
        if cookie := answer.getheader("Set-Cookie"):
            self.headers["Cookie"] = cookie.partition(";")[0]
        parser = etree.XMLParser(huge_tree=False)
        while block := answer.read(1 << 16):
            self.bytes += len(block)
            parser.feed(block)
        assert answer.status == 200, method
        return parser.close()[0][0]


def read(wire: Wire, asked: dict[str, list[str]]) -> int:
    """How many objects there are of the asked types."""
    types = "".join(f"<type>{kind}</type>" for kind in asked)
    view = wire.ask(
        "CreateContainerView",
        (
            '<_this type="ViewManager">ViewManager</_this><container '
            f'type="Folder">group-d1</container>{types}<recursive>true</recursive>'
        ),
    )
    wanted = "".join(
        f"<propSet><type>{kind}</type>{''.join(f'<pathSet>{escape(p)}</pathSet>' for p in paths)}</propSet>"
        for kind, paths in asked.items()
    )
    start = f'<objectSet><obj type="ContainerView">{view[0].text}</obj><skip>true</skip>{WALK}</objectSet>'
    page = wire.ask(
        "RetrievePropertiesEx",
        f"{COLLECTOR}<specSet>{wanted}{start}</specSet><options><maxObjects>{PAGE}</maxObjects></options>",
    )[0]
    count = len(page.findall("{*}objects"))
    while token := page.findtext("{*}token"):
        page = wire.ask("ContinueRetrievePropertiesEx", f"{COLLECTOR}<token>{token}</token>")[0]
        count += len(page.findall("{*}objects"))
    return count


def main(address: str, user: str, password: str) -> None:
    wire = Wire(address)
    wire.ask("RetrieveServiceContent", '<_this type="ServiceInstance">ServiceInstance</_this>')
    wire.ask(
        "Login",
        (
            f'<_this type="SessionManager">SessionManager</_this><userName>{escape(user)}'
            f"</userName><password>{escape(password)}</password>"
        ),
    )
    count = read(wire, json.load(sys.stdin))
    wire.ask("Logout", '<_this type="SessionManager">SessionManager</_this>')
    print(count, wire.bytes)


if __name__ == "__main__":
    main(*sys.argv[1:])
