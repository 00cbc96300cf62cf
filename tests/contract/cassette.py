"""The cassette middleware of the transport: vcr.py's cassettes under our own transport, which vcr.py itself doesn't
know.

vcr.py patches httpx2's own network transport; bfinfra's transport has another one (routes, pins), so vcr.py would
record nothing and go live in silence. Its `Cassette` (matching, play counts) is used as it is; only the way
into it is ours.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import yaml
from contract.scrub import Scrub
from vcr.cassette import Cassette
from vcr.matchers import body, method, uri
from vcr.record_mode import RecordMode
from vcr.request import Request

HEADERS = ("accept", "content-type", "soapaction", "retry-after")
"""The only headers that a cassette holds: a list of what may be kept can't forget a header that says who we
are.
"""


class NotOnTape(AssertionError):
    """A request that the cassette doesn't hold, or doesn't hold once more."""


class Readable:
    """A vcr.py serializer: the header first, bodies of several lines as blocks."""

    @staticmethod
    def serialize(data: Mapping[str, Any]) -> str:
        ordered = {
            "metadata": data.get("metadata", {}),
            "version": data["version"],
            "interactions": data["interactions"],
        }
        return yaml.dump(ordered, Dumper=_Blocks, sort_keys=False, width=160, allow_unicode=True)

    @staticmethod
    def deserialize(text: str) -> Any:
        return yaml.load(text, Loader=yaml.CSafeLoader)


class _Blocks(yaml.SafeDumper):
    def represent_str(self, text: str) -> Any:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Blocks.add_representer(str, _Blocks.represent_str)


class Tape:
    """One cassette file, being recorded or played. `filling` goes into a Transport; safe in several
    threads.
    """

    def __init__(self, path: Path, scrub: Scrub, *, recording: bool) -> None:
        self.recording = recording
        self._scrub = scrub
        self._lock = threading.Lock()
        mode = RecordMode.ALL if recording else RecordMode.NONE
        settings = {
            "serializer": Readable,
            "record_mode": mode,
            "match_on": (method, uri, body),
            "before_record_request": scrub.request,
            "before_record_response": scrub.response,
        }
        if recording:
            path.unlink(missing_ok=True)
        elif not path.exists():
            raise NotOnTape(f"there is no cassette {path.name}; record it with: script/record")
        self._cassette = Cassette.load(path=str(path), **settings)

    def note(self, name: str, value: str = "") -> str:
        """A value of the cassette's header: written while recording, read while playing."""
        return str(self._cassette.get_metadata(name, value))

    def filling(self, inner: httpx2.BaseTransport) -> httpx2.BaseTransport:
        """For `Transport(middleware=[tape.filling])`."""
        return _Recording(self, inner) if self.recording else _Playing(self, inner)

    def keep(self, request: httpx2.Request, response: httpx2.Response) -> None:
        """Add an exchange whose bodies have been read."""
        answer = {
            "status": {"code": response.status_code, "message": response.reason_phrase},
            "headers": _headers(response.headers, many=True),
            "body": {"string": response.content},
        }
        with self._lock:
            self._cassette.append(_question(request), answer)

    def play(self, request: httpx2.Request) -> httpx2.Response:
        """The recorded answer, each once, in the order of recording. NotOnTape."""
        with self._lock:
            try:
                answer = self._cassette.play_response(_question(request))
            except Exception as error:
                raise NotOnTape(
                    f"{request.method} {request.url.path} is not on the cassette {self._cassette.path} "
                    f"(again):\n{request.content[:600]!r}"
                ) from error
        return httpx2.Response(
            answer["status"]["code"],
            headers=[(n, v) for n, vs in answer["headers"].items() for v in vs],
            content=answer["body"]["string"],
        )

    def finish(self) -> None:
        """Save what was recorded; or insist that everything was played, once each."""
        if self.recording:
            self._scrub.insist(
                Readable.serialize(
                    {"version": 1, "metadata": self._cassette._metadata, "interactions": self._plain()}
                )
            )
            self._cassette._save()
            return
        played, there = self._cassette.play_count, len(self._cassette)
        assert (played, self._cassette.all_played) == (there, True), (
            f"{played} of {there} answers of {self._cassette.path} were played"
        )
        assert there, f"{self._cassette.path} is empty"

    def _plain(self) -> list[Any]:
        return [
            {"request": question._to_dict(), "response": answer} for question, answer in self._cassette.data
        ]


class _Recording(httpx2.BaseTransport):
    def __init__(self, tape: Tape, inner: httpx2.BaseTransport) -> None:
        self._tape, self._inner = tape, inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        refuse_streams(request)
        request.read()
        answer = self._inner.handle_request(request)
        answer.read()
        self._tape.keep(request, answer)
        headers = [
            (name, value)
            for name, value in answer.headers.multi_items()
            if name.lower() not in ("content-encoding", "content-length", "transfer-encoding")
        ]
        return httpx2.Response(answer.status_code, headers=headers, content=answer.content)

    def close(self) -> None:
        self._inner.close()


class _Playing(httpx2.BaseTransport):
    """The network below is never called."""

    def __init__(self, tape: Tape, inner: httpx2.BaseTransport) -> None:
        self._tape, self._inner = tape, inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        refuse_streams(request)
        request.read()
        return self._tape.play(request)

    def close(self) -> None:
        self._inner.close()


def refuse_streams(request: httpx2.Request) -> None:
    """vcr.py holds whole bodies: what has no end, or is too large, is not for cassettes."""
    asked = request.url.params
    if request.url.path.startswith("/nfc/") or asked.get("watch") == "true" or asked.get("follow") == "true":
        raise NotOnTape(
            f"{request.method} {request.url.path}: uploads, watches and followed logs stay out of cassettes"
        )


def _question(request: httpx2.Request) -> Request:
    return Request(request.method, str(request.url), request.content, _headers(request.headers, many=False))


def _headers(headers: httpx2.Headers, *, many: bool) -> dict[str, Any]:
    return {name: [headers[name]] if many else headers[name] for name in HEADERS if name in headers}
