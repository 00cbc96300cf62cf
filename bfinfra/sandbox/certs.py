"""GET /certs/download.zip: vCenter's trusted roots, which anybody may download."""

from __future__ import annotations

import io
import zipfile

from bfinfra.sandbox.handler import Handler, Request, Response

NAME = "5b2e1c7d"  # OpenSSL's hash of a subject; clients read every file


def certs_handler(ca_pem: str) -> Handler:
    """The handler."""
    data = _zipped(ca_pem)

    def handler(request: Request) -> Response:
        if request.path == "/certs/download.zip" and request.method == "GET":
            return Response(200, data, {"content-type": "application/zip"})
        return Response(
            404, f"nothing at {request.method} {request.path}".encode(), {"content-type": "text/plain"}
        )

    return handler


def _zipped(ca_pem: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for system, suffix in (("lin", ""), ("mac", ""), ("win", ".crt")):
            archive.writestr(f"certs/{system}/{NAME}.0{suffix}", ca_pem)
    return out.getvalue()
