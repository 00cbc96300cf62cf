"""A Service's endpoints: the ready pods that it selects, and the programs that their containers run."""

from __future__ import annotations

import base64
import functools
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.kubernetes.objects import Object, dig, namespace_of, uid_of
from bfinfra.sandbox.kubernetes.programs import Container, Listening, Program
from bfinfra.sandbox.kubernetes.programs.bitfusion_webhook import BitfusionWebhook

if TYPE_CHECKING:
    from bfinfra.sandbox.kubernetes.cluster_state import ClusterState

PROGRAMS: tuple[Program, ...] = (BitfusionWebhook(),)
ROUNDS = 4  # messages that each side sends at most in a handshake in memory
EXPIRED, NOT_YET, OTHER_NAME = 10, 9, 62  # OpenSSL's verdicts


class Unreachable(Exception):
    """Nothing answered; the words are those of Go's client."""


class Services:
    """The programs of one cluster. `programs` may be added to by a test."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self.programs: list[Program] = list(PROGRAMS)
        self._files: dict[
            str, dict[str, dict[str, bytes]]
        ] = {}  # pod's uid → container → path → the content at its start

    def started(self, pod: Object) -> None:
        """A pod's containers started now: what they mount is what their programs have read."""
        ours = [each for each in pod["spec"]["containers"] if self._program(each)]
        if ours:
            self._files[uid_of(pod)] = {each["name"]: dict(self._mounted(pod, each)) for each in ours}

    def sweep(self) -> None:
        """Forget pods that no longer exist."""
        alive = {uid_of(pod) for pod in self._cluster.all("", "pods")} if self._files else set()
        self._files = {uid: files for uid, files in self._files.items() if uid in alive}

    def save(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {
            uid: {
                name: {path: base64.b64encode(data).decode() for path, data in files.items()}
                for name, files in each.items()
            }
            for uid, each in self._files.items()
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take over what `save` gave."""
        self._files = {
            uid: {
                name: {path: base64.b64decode(text) for path, text in files.items()}
                for name, files in each.items()
            }
            for uid, each in data.items()
        }

    def reviewed(self, service: Object, bundle: str, review: Object) -> Object:
        """The answer of a Service to an AdmissionReview. `bundle`: base64 of the authorities that are
        trusted. Raises Unreachable, TimeoutError.
        """
        name, namespace, port = service["name"], service["namespace"], service.get("port", 443)
        program, container, listening = self._endpoint(name, namespace, port)
        why = handshake(
            listening.certificate, listening.key, base64.b64decode(bundle or ""), f"{name}.{namespace}.svc"
        )
        if why:
            raise Unreachable(why)
        answer = program.review(container, service.get("path") or "/", review)
        if answer is None:
            raise LookupError("the server could not find the requested resource")
        return answer

    def _endpoint(self, name: str, namespace: str, port: int) -> tuple[Program, Container, Listening]:
        found = self._cluster.get("", "services", name, namespace)
        if found is None:
            raise Unreachable(f'service "{name}" not found')
        target = next(
            (
                each.get("targetPort", port)
                for each in dig(found, "spec", "ports", default=[])
                if each.get("port") == port
            ),
            None,
        )
        if target is None:
            raise Unreachable(f'no service port {port} found for service "{name}"')
        pods = list(self._ready(found))
        if not pods:
            raise Unreachable(f'no endpoints available for service "{name}"')
        for pod in pods:
            for each in pod["spec"]["containers"]:
                program = self._program(each)
                container = Container(
                    self._cluster, pod, each, self._files.get(uid_of(pod), {}).get(each["name"], {})
                )
                listening = program.listens(container) if program else None
                if program and listening and listening.port == _number(target, each):
                    return program, container, listening
        address = dig(pods[0], "status", "podIP", default="")
        raise Unreachable(
            f"dial tcp {address}:{_number(target, pods[0]['spec']['containers'][0])}: connect: "
            "connection refused"
        )

    def _ready(self, service: Object) -> Iterator[Object]:
        wanted = dig(service, "spec", "selector", default={})
        for pod in self._cluster.all("", "pods", namespace_of(service)) if wanted else ():
            labels = pod["metadata"].get("labels") or {}
            conditions = {
                each["type"]: each["status"] for each in dig(pod, "status", "conditions", default=[])
            }
            if (
                all(labels.get(key) == value for key, value in wanted.items())
                and conditions.get("Ready") == "True"
                and not pod["metadata"].get("deletionTimestamp")
            ):
                yield pod

    def _program(self, container: Object) -> Program | None:
        return next((each for each in self.programs if each.runs(container["image"])), None)

    def _mounted(self, pod: Object, container: Object) -> Iterator[tuple[str, bytes]]:
        volumes = {each["name"]: each for each in dig(pod, "spec", "volumes", default=[])}
        for mount in container.get("volumeMounts") or []:
            held = self._held(namespace_of(pod), volumes.get(mount["name"]) or {})
            folder = mount["mountPath"].rstrip("/")
            if one := mount.get("subPath"):
                yield from ((folder, data) for path, data in held.items() if path == one)
            else:
                yield from ((f"{folder}/{path}", data) for path, data in held.items())

    def _held(self, namespace: str, volume: Object) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for source in [volume, *dig(volume, "projected", "sources", default=[])]:
            for kind, plural, field in (
                ("secret", "secrets", "secretName"),
                ("configMap", "configmaps", "name"),
            ):
                reference = source.get(kind) or {}
                thing = reference and self._cluster.get(
                    "", plural, reference.get(field) or reference.get("name", ""), namespace
                )
                values = _values(thing or {})
                paths = {each["key"]: each["path"] for each in reference.get("items") or []} or {
                    key: key for key in values
                }
                found |= {path: values[key] for key, path in paths.items() if key in values}
        return found


def _values(thing: Object) -> dict[str, bytes]:
    encoded = {
        **(thing.get("binaryData") or {}),
        **((thing.get("data") or {}) if thing.get("kind") == "Secret" else {}),
    }
    plain = (thing.get("data") or {}) if thing.get("kind") == "ConfigMap" else {}
    return {
        **{key: base64.b64decode(value) for key, value in encoded.items()},
        **{key: value.encode() for key, value in plain.items()},
    }


def _number(target: Any, container: Object) -> int:
    """A port by number, or by its name in the container."""
    if isinstance(target, int) or str(target).isdigit():
        return int(target)
    return next(
        (each["containerPort"] for each in container.get("ports") or [] if each.get("name") == target), 0
    )


@functools.lru_cache(maxsize=64)
def handshake(certificate: bytes, key: bytes, authorities: bytes, host: str) -> str:
    """Return the error, in Go's words, of a client that trusts these authorities and gets this certificate;
    "" where it accepts it.
    """
    try:
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:
            file.write(certificate + b"\n" + key)
            file.flush()
            server.load_cert_chain(file.name)
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.hostname_checks_common_name = False
        if authorities.strip():
            client.load_verify_locations(cadata=authorities.decode("ascii", "replace"))
        _shake(client, server, host)
    except ssl.SSLCertVerificationError as wrong:
        known = {
            EXPIRED: "certificate has expired or is not yet valid",
            NOT_YET: "certificate has expired or is not yet valid",
            OTHER_NAME: f"certificate is not valid for {host}",
        }
        return f"x509: {known.get(wrong.verify_code, 'certificate signed by unknown authority')}"
    except (ssl.SSLError, ValueError):
        return "remote error: tls: internal error"
    return ""


def _shake(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> None:
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(back, there, server_hostname=host),
        server.wrap_bio(there, back, server_side=True),
    ]
    for _ in range(ROUNDS):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
