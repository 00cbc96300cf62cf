"""Stands in for the image of bitfusion-webhook 0.4: answers /mutate and /validate over TLS as its sources do,
on loopback.
"""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ON = ("y", "yes", "true", "on", "all", "injection")
AMOUNT, PERCENT, GPU = "bitfusion.io/gpu-amount", "bitfusion.io/gpu-percent", "bitfusion.io/gpu"


class Webhook:
    """What was asked: paths with the review's version and the pod's name. `advertised`: GPUs of the nodes,
    which /validate looks for.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.advertised = True

    def answer(self, path: str, review: dict[str, Any]) -> dict[str, Any]:
        request = review["request"]
        pod = request["object"]
        self.asked.append((path, review["apiVersion"], pod["metadata"].get("name", "")))
        if path == "/mutate":
            return {
                "response": {"uid": request["uid"], **mutated(pod)}
            }  # no apiVersion, no kind: as webhook.go leaves them out
        notes = pod["metadata"].get("annotations") or {}
        fine = notes.get("auto-management/status") != "injected" or self.advertised
        response = {
            "uid": request["uid"],
            "allowed": fine,
            **({} if fine else {"status": {"message": "Resource validation failed"}}),
        }
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def mutated(pod: dict[str, Any]) -> dict[str, Any]:
    """The response of mutate() in webhook.go, for what the test's pods have."""
    notes = pod["metadata"].get("annotations") or {}
    if notes.get("auto-management/bitfusion", "").lower() not in ON or not notes.get("bitfusion-client/os"):
        return {"allowed": True}
    patch: list[dict[str, Any]] = [
        {"op": "add", "path": "/spec/initContainers", "value": [{"name": "populate", "image": "client"}]},
        {"op": "add", "path": "/metadata/annotations", "value": {"auto-management/status": "injected"}},
    ]
    for number, container in enumerate(pod["spec"]["containers"]):
        asks = container.get("resources", {}).get("requests", {})
        if not int(asks.get(AMOUNT, 0)):
            return {"allowed": False, "status": {"message": "gpuNum.Value() Error "}}
        count, share = int(asks[AMOUNT]), int(asks.get(PERCENT, 100))
        where = f"/spec/containers/{number}"
        command = (
            f"/bitfusion/usr/bin/bitfusion run -n {count} -p {share / 100:f}  -- "
            f"{' -- '.join(container['command'])}"
        )
        patch += [
            {
                "op": "replace",
                "path": f"{where}/env",
                "value": [*container.get("env", []), {"name": "LD_LIBRARY_PATH", "value": "/bitfusion/lib"}],
            },
            {"op": "replace", "path": f"{where}/command", "value": ["/bin/bash", "-c", command]},
            {
                "op": "replace",
                "path": f"{where}/resources",
                "value": {each: {GPU: str(share * count)} for each in ("requests", "limits")},
            },
        ]
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
    }


@contextlib.contextmanager
def serving(webhook: Webhook, port: int, certificate: Path) -> Iterator[Webhook]:
    """On loopback, with the certificate and key of a PEM file."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(webhook.answer(self.path.partition("?")[0], review)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield webhook
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
