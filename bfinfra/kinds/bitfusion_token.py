"""A Bitfusion client token as downloaded from the plug-in: ca.crt, client.yaml, servers.conf. (Configuration of AI/ML application, figure 4.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import model_validator

from bfinfra.backends.bitfusion import Token, read_token
from bfinfra.model import kind
from bfinfra.model.document import Document
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Around, Need, Part, Seen
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.sources import LocalFile


class Source(Part):
    """Where the token is: as downloaded, or unpacked."""

    tar: LocalFile | None = None
    """The tar as downloaded."""
    folder: LocalFile | None = None
    """A folder with the three files and nothing else."""

    @model_validator(mode="after")
    def _one(self) -> Source:
        if (self.tar is None) == (self.folder is None):
            raise ValueError("give either tar or folder")
        return self

    @property
    def path(self) -> Path:
        """The absolute path."""
        file = self.tar or self.folder
        assert file is not None
        return file.path


class Spec(kind.Spec):
    """What a user writes for one token; its content is never printed."""

    source: Source
    """Where the token is."""
    servers: tuple[Annotated[str, Ref("bitfusion_server")], ...] = ()
    """Servers of this site that the token leads to: what uses the token waits for them."""


@dataclass(frozen=True, kw_only=True)
class State(kind.State):
    """A token that was read and checked. `digest`: of its content; `not_after`: when its CA ends, UTC."""

    path: str
    digest: str
    not_after: datetime
    servers: tuple[tuple[str, int], ...]


class BitfusionToken(kind.Source[Spec, State]):
    """A Bitfusion client token."""

    document = Document.SINGAPORE_POC
    alone = True

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}

    def observe(self, wanted: Mapping[str, Spec | None], needs: Mapping[Key, Need], *, others: bool = True) -> Seen:
        """Reads the files; what is wrong with one stands in the facts, by name."""
        states: dict[str, State] = {}
        for name, spec in wanted.items():
            if spec is None:
                continue
            try:
                token = read_token(spec.source.path)
            except ValueError as error:
                self._problems[name] = str(error)
                continue
            self._problems[name] = _expired(token)
            states[name] = State(path=str(spec.source.path), digest=token.digest, not_after=token.not_after, servers=token.servers)
        return Seen(states, dict(self._problems))

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, around: Around) -> Sequence[kind.Step]:
        """None; refuses a token that can't be used."""
        if spec is not None and (problem := (around.facts or {}).get(name)):
            what, _, remedy = problem.partition(": ")
            raise Refusal("the token can't be used", field="source", why=what, next=remedy)
        return ()


def _expired(token: Token) -> str:
    if token.not_after > datetime.now(UTC):
        return ""
    return f"its certificate authority (ca.crt) ended on {token.not_after:%Y-%m-%d %H:%M} UTC: download a new token"
