"""Charts in OCI registries: pulled by the digest of their manifest, and kept in bfinfra's folder, so that a
registry is asked once for each chart.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bfinfra.backends.helm.chart import LARGEST
from bfinfra.backends.words import safe
from bfinfra.model import private
from bfinfra.model.errors import BfinfraError, SecretMissing
from bfinfra.model.files import PRIVATE, write_whole
from bfinfra.model.records import dataclass
from bfinfra.model.secret import Secret
from bfinfra.model.trust import Trust

if TYPE_CHECKING:
    import httpx2

    from bfinfra.backends.transport import Transport

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
ARCHIVE = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
LARGEST_MANIFEST = 4 << 20  # bytes; what registries accept
HOPS = 3  # redirects, which lead to where a registry keeps its content
DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
NEXT = "or get the archive with helm pull elsewhere, and write it as file:"


@dataclass(frozen=True)
class OciChart:
    """A chart in a registry: `registry.example.com:5000`, its path there, and the digest of its manifest."""

    registry: str
    path: str
    digest: str
    username: str = ""
    password: Secret | None = field(default=None, repr=False)
    trust: Trust = field(default_factory=Trust)

    def __str__(self) -> str:
        return f"oci://{self.registry}/{self.path}@{self.digest}"


def kept(digest: str) -> tuple[Path, str]:
    """The archive of a chart that was pulled before, and the archive's own digest. Raises ValueError if
    there is none.
    """
    manifest = _read(digest)
    archive = _archive_in(manifest)[0] if manifest is not None else ""
    if manifest is None or _read(archive) is None:
        raise ValueError(f"the chart {digest} was not pulled yet; plan does that")
    return _place(archive), archive


class Charts:
    """Pulls charts."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def pull(self, chart: OciChart) -> None:
        """Have the chart's archive on this machine. Raises ValueError with what to do; SecretMissing."""
        manifest = _read(chart.digest)
        if manifest is not None and _read(_archive_in(manifest)[0]) is not None:
            return
        try:
            with _Session(self._transport, chart) as session:
                if manifest is None:
                    manifest = session.get("manifests", chart.digest, LARGEST_MANIFEST, MANIFEST)
                    _keep(chart.digest, manifest)
                archive, size = _archive_in(manifest)
                _keep(archive, session.get("blobs", archive, size))
        except SecretMissing:
            raise
        except BfinfraError as error:
            problem = error.problems[0]
            why = f" ({problem.why})" if problem.why else ""
            raise ValueError(
                f"{chart} can't be pulled: {problem.what}{why}; {problem.next or 'try again'}, {NEXT}"
            ) from None


class _Session:
    """Requests to the registry of one chart. A token that the registry asks for is kept for the next."""

    def __init__(self, transport: Transport, chart: OciChart) -> None:
        self._transport, self._chart = transport, chart
        self._authorization = ""
        self._clients: dict[str, httpx2.Client] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._clients.values():
            each.close()

    def get(self, what: str, digest: str, size: int, accept: str = "*/*") -> bytes:
        """The content of a digest, which it has. Raises BfinfraError, ValueError."""
        url = f"https://{self._chart.registry}/v2/{self._chart.path}/{what}/{digest}"
        headers = {"Accept": accept, "Accept-Encoding": "identity", "Range": f"bytes=0-{size - 1}"}
        answer = self._ask(url, headers)
        if answer.status_code == 401:
            self._authorization = self._authorized(answer.headers.get("www-authenticate", ""))
            answer = self._ask(url, headers)
        if answer.status_code not in (200, 206):
            raise ValueError(f"{self._chart} can't be pulled: {self._refusal(answer.status_code)}")
        found = answer.content
        if _digest(found) != digest:
            raise ValueError(
                f"{self._chart} can't be pulled: the registry answers other content than {digest}"
            )
        return found

    def _refusal(self, status: int) -> str:
        if status in (401, 403):
            return (
                "the registry wants another account; write username and password of one that may pull it"
                if not self._chart.username
                else f"the registry refuses {self._chart.username}; check its password, and that it may pull"
            )
        if status == 404:
            return (
                "the registry has no such chart; check its path, and that the digest is the one that "
                "helm pull and helm push print, not that of the archive"
            )
        return f"the registry answers {status}; try again later, {NEXT}"

    def _ask(self, url: str, headers: dict[str, str]) -> httpx2.Response:
        own = {"Authorization": self._authorization} if self._authorization else {}
        answer = self._client(url).get(url, headers={**headers, **own})
        for _ in range(HOPS):
            if answer.status_code not in (301, 302, 303, 307, 308):
                break
            onward = str(answer.url.join(answer.headers.get("location", "")))
            if not onward.startswith("https://"):
                raise ValueError(
                    f"{self._chart} can't be pulled: its registry redirects to what is not https"
                )
            answer = self._client(onward).get(onward, headers=headers)  # without the account
        return answer

    def _client(self, url: str) -> httpx2.Client:
        origin = "/".join(url.split("/", 3)[:3])
        if origin not in self._clients:
            trust = self._chart.trust
            if origin != f"https://{self._chart.registry}":
                trust = Trust(ca_file=trust.ca_file)
            self._clients[origin] = self._transport.client(origin, trust, public=True)
        return self._clients[origin]

    def _authorized(self, challenge: str) -> str:
        """The Authorization that a challenge asks for, "" if it can't be had."""
        scheme, _, rest = challenge.partition(" ")
        asked = dict(CHALLENGE.findall(rest))
        basic = self._basic()
        if scheme.lower() == "basic":
            return basic
        realm = asked.get("realm", "")
        if scheme.lower() != "bearer" or not realm.startswith("https://"):
            return ""
        scope = asked.get("scope") or f"repository:{self._chart.path}:pull"
        answer = self._client(realm).get(
            realm,
            params={"service": asked.get("service", ""), "scope": scope},
            headers={"Authorization": basic} if basic else {},
        )
        try:
            found = json.loads(answer.content) if answer.status_code == 200 else {}
        except (ValueError, RecursionError):
            found = {}
        token = found.get("token") or found.get("access_token") if isinstance(found, dict) else ""
        return f"Bearer {token}" if isinstance(token, str) and token else ""

    def _basic(self) -> str:
        if self._chart.password is None:
            return ""
        text = f"{self._chart.username}:{self._chart.password.reveal()}"
        return f"Basic {base64.b64encode(text.encode()).decode()}"


def _archive_in(manifest: bytes) -> tuple[str, int]:
    """Digest and size of the chart's archive. Raises ValueError for what is no chart."""
    try:
        found: Any = json.loads(manifest)
        layers = [each for each in found["layers"] if each["mediaType"] == ARCHIVE]
        digest, size = str(layers[0]["digest"]), int(layers[0]["size"])
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        raise ValueError("what the registry has there is no Helm chart") from None
    if not DIGEST.fullmatch(digest) or not 0 < size <= LARGEST:
        raise ValueError(
            f"its chart is larger than {LARGEST >> 20} MiB, or has no SHA-256: {safe(digest, 80)}"
        )
    return digest, size


def _place(digest: str) -> Path:
    return private.home() / "charts" / digest.replace(":", "-")


def _read(digest: str) -> bytes | None:
    """What is kept under a digest; None if there is nothing, or other content."""
    try:
        found = _place(digest).read_bytes()
    except OSError:
        return None
    return found if _digest(found) == digest else None


def _keep(digest: str, content: bytes) -> None:
    try:
        place = private.folder(_place(digest).parent) / _place(digest).name
        write_whole(place, content, PRIVATE)
    except (OSError, BfinfraError) as error:
        raise ValueError(
            f"the chart can't be kept on this machine: {error}; or set BFINFRA_STATE_HOME to a folder that "
            "can be written to"
        ) from None


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
