"""A Bitfusion token as Secrets in a cluster's namespaces, in the form that the client's manifests expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from bfinfra.backends.bitfusion import Token, read_token
from bfinfra.kinds import _copies
from bfinfra.kinds._copies import Content, State, Write
from bfinfra.model import kind
from bfinfra.model.document import Document
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.kind import Around, Need
from bfinfra.model.refs import Key, Ref

SINGLE = {"bitfusion-secret": ("ca.crt", "client.yaml", "servers.conf")}
THREE = {
    "bitfusion-client-secret-ca.crt": ("ca.crt",),
    "bitfusion-client-secret-client.yml": ("client.yaml",),
    "bitfusion-client-secret-servers.conf": ("servers.conf",),
}
FORMS: Mapping[str, Mapping[str, tuple[str, ...]]] = {"single": SINGLE, "three": THREE}


class Spec(_copies.Spec):
    """What a user writes for one token in one cluster."""

    token: Annotated[str, Ref("bitfusion_token")]
    """The token."""
    form: Literal["single", "three"] = "three"
    """three: a Secret a file, as the device plug-in 0.3 and later and Bitfusion 4 have it; single: one Secret `bitfusion-secret`."""

    def names(self, name: str) -> tuple[str, ...]:
        """The Secrets of the form; their names are fixed."""
        return tuple(FORMS[self.form])


class TokenSecret(_copies.Copies[Spec, State]):
    """A Bitfusion token as Secrets in a cluster's namespaces."""

    document = Document.SINGAPORE_POC
    address = "token_secret"

    def expected(self, name: str, spec: Spec, needs: Mapping[Key, Need]) -> Content | None:
        """The token's files, in the form's Secrets."""
        need = needs.get(Key("bitfusion_token", spec.token))
        if need is None or need.state is None:
            return None
        return _content(_read(need.state.path, need.state.digest), spec.names(name))

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, around: Around) -> Sequence[kind.Step]:
        """A step a namespace. The source is the token's path and digest."""
        need = around.needs.get("token")
        source = {"path": need.get("path"), "digest": need.get("digest")} if need is not None else {}
        applied = (state.mark.applied if state and state.mark else None) or {}
        token = spec.token if spec else applied.get("token", name)
        return _copies.steps(name, spec, state, around, what=f"token {token}", source=source)

    def content(self, step: Write) -> Content:
        """The token, read again; refused where it isn't the one that the plan showed."""
        return _content(_read(step.source["path"], step.source["digest"]), step.names)


def _read(path: str, digest: str) -> Token:
    try:
        token = read_token(Path(path))
    except ValueError as error:
        raise BfinfraError(Problem("the token can't be read", path, str(error))) from None
    if token.digest != digest:
        raise BfinfraError(Problem("the token changed while bfinfra worked with it", path, next="plan again"))
    return token


def _content(token: Token, names: Sequence[str]) -> Content:
    keys = {**SINGLE, **THREE}
    return {name: {key: token.files[key].encode() for key in keys[name]} for name in names}
