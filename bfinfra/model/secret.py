"""Secrets are references. A value exists only between `reveal` and the request that contains it."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import os
import shlex
import threading
from dataclasses import field
from pathlib import Path
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from bfinfra.model import subprocesses
from bfinfra.model.errors import Problem, SecretMissing
from bfinfra.model.records import dataclass
from bfinfra.model.redact import encodable, hide
from bfinfra.model.sources import LARGEST, LocalFile, Sources, small

WAYS = ("env", "file", "command", "keyring")
MACHINE = "machine"
"""The way of a secret that a machine of the site gave: no site can write it."""
RUN = ("command", "keyring")  # the ways that start a program
WITHHELD = {
    "BFINFRA_VCENTER_PASSWORD",
    "GOVC_PASSWORD",
    "VSPHERE_PASSWORD",
    "VMWARE_PASSWORD",
    "KUBECTL_VSPHERE_PASSWORD",
}
"""Variables that contain a secret: those that a site refers to, and well-known ones. Programs that bfinfra
starts don't get them.
"""
COMMAND_TIMEOUT = 30  # seconds
_ONE_AT_A_TIME = (
    threading.Lock()
)  # otherwise ten servers that start at once would each compute the same digest with another salt


class LiteralSecret(ValueError):
    """A value is written where a reference belongs. Messages must not show its line."""


@dataclass(frozen=True, slots=True)
class Secret:
    """One of `{env: NAME}`, `{file: path}`, `{command: [argv]}`, `{keyring: service/user}`. `str()` is the
    reference.
    """

    way: str
    target: str | tuple[str, ...]
    sources: Sources = field(default_factory=Sources, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{{{self.way}: {self.target if isinstance(self.target, str) else list(self.target)}}}"

    def reveal(self) -> str:
        """The value, without one trailing newline of a file or a command's output. Raises SecretMissing."""
        return hide(self.document())

    def document(self) -> str:
        """The same of a file in which only parts are secret: whoever reads it hides these. To hide all of a
        kubeconfig takes a hundred times its size. Raises SecretMissing.
        """
        read = {
            "env": self._from_env,
            "file": self._from_file,
            "command": self._from_command,
            "keyring": self._from_keyring,
            MACHINE: self._from_env,
        }
        return read[self.way]()

    @property
    def leads(self) -> tuple[object, ...]:
        """The place from which the value is read. Equal for references to the same place, so that each is
        checked once. Texts, as paths take long to compare.
        """
        return self.way, self.target, str(self.sources.base), str(self.sources.stand_ins)

    @classmethod
    def of_machine(cls, name: str, text: str) -> Secret:
        """A text that a machine gave. `name`: what it is, of which machine."""
        return cls(MACHINE, name, Sources(env={name: text}))

    @property
    def foreign(self) -> bool:
        """True if a machine gave it: a path or a program in it is none of this machine's."""
        return self.way == MACHINE

    @property
    def file(self) -> LocalFile | None:
        """The file that it is read from, or None."""
        return (
            LocalFile(str(self.target), self.sources.path(str(self.target))) if self.way == "file" else None
        )

    def missing(self) -> str:
        """Return why the reference leads nowhere, or "". Runs no command and opens no keyring."""
        if self.way == "env" and str(self.target) not in self.sources.env:
            return f"the environment variable {self.target} is not set"
        if self.way == "env" and not _encodable(self.sources.env[str(self.target)]):
            return f"the environment variable {self.target} is not UTF-8 text"
        if self.way == "file" and not self.sources.path(str(self.target)).is_file():
            return f"there is no file {self.sources.path(str(self.target))}"
        return ""

    def _from_env(self) -> str:
        if why := self.missing():
            name = shlex.quote(str(self.target))
            raise SecretMissing(Problem(why, next=f"export {name}=…, or change the reference"))
        return self.sources.env[str(self.target)]

    def _from_file(self) -> str:
        path = self.sources.path(str(self.target))
        try:
            return small(path).removesuffix("\n")
        except OSError as error:
            raise SecretMissing(
                Problem(f"the secret file {path} can't be read", why=error.strerror or "")
            ) from None

    def _from_command(self) -> str:
        return _run(tuple(self.target), str(self.sources.base))

    def _from_keyring(self) -> str:
        service, _, user = str(self.target).partition("/")
        return _run(("keyring", "get", "--", service, user), str(self.sources.base))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        def read(value: object, info: core_schema.ValidationInfo) -> Secret:
            return (
                value
                if isinstance(value, Secret)
                else _parse(value, (info.context or {}).get("sources") or Sources())
            )

        return core_schema.with_info_plain_validator_function(
            read, serialization=core_schema.plain_serializer_function_ser_schema(lambda s: s.reference())
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        text = {"type": "string", "minLength": 1}
        forms: dict[str, Any] = dict.fromkeys(WAYS, text) | {
            "command": {"type": "array", "items": text, "minItems": 1}
        }
        return {
            "description": "A secret, by reference only.",
            "oneOf": [
                {
                    "type": "object",
                    "properties": {way: form},
                    "required": [way],
                    "additionalProperties": False,
                }
                for way, form in forms.items()
            ],
        }

    def reference(self) -> dict[str, Any]:
        """The reference as a site writes it."""
        return {self.way: self.target if isinstance(self.target, str) else list(self.target)}


def _parse(value: object, sources: Sources) -> Secret:
    if isinstance(value, str):
        raise LiteralSecret(
            "write a reference: {env: NAME}, {file: path}, {command: [argv]} or {keyring: service/user}"
        )
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in WAYS:
        raise ValueError(
            "expected exactly one of {env: NAME}, {file: path}, {command: [argv]}, {keyring: service/user}"
        )
    way, target = next(iter(value.items()))
    if way in RUN and sources.confined:
        raise ValueError(
            f"a Site can't have {{{way}: …}}: nothing that its author names is run here; write {{env: NAME}} "
            "with NAME in spec.env, or {file: path} with the path in spec.files"
        )
    if way == "command":
        if not isinstance(target, list) or not target or not all(isinstance(t, str) for t in target):
            raise ValueError("command: expected a list, the program and its arguments")
        return Secret(way, tuple(target), sources)
    if not isinstance(target, str) or not target:
        raise ValueError(f"{way}: expected text")
    if way == "env":
        WITHHELD.add(target)
    if way == "file":
        sources.path(target)  # refused here, where the message has the place in the site
    if way == "keyring" and "/" not in target:
        raise ValueError("keyring: expected service/user")
    return Secret(way, target, sources)


def read_again() -> None:
    """Run the commands of references anew at the next `reveal`. Secrets are renewed while a process that
    runs for months uses them.
    """
    _run.cache_clear()


@functools.lru_cache(maxsize=256)
def _run(argv: tuple[str, ...], folder: str) -> str:
    try:
        # It stays in the session of the terminal, on which it may ask for a passphrase.
        done = subprocesses.run(
            (_program(argv[0], folder), *argv[1:]),
            env=environment(),
            limit=COMMAND_TIMEOUT,
            largest=LARGEST,
            cwd=Path(folder),
            own_session=False,
        )
        text = done.stdout.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise SecretMissing(
            Problem(
                f"the secret's command {argv[0]} did not run",
                why=_reason(error),
                next="run it by hand to see why",
            )
        ) from None
    if done.code:
        raise SecretMissing(
            Problem(
                f"the secret's command {argv[0]} ended with {done.code}", next="run it by hand to see why"
            )
        )
    return text.removesuffix("\r\n" if text.endswith("\r\n") else "\n")


def _program(name: str, folder: str) -> str:
    """The path of a command's program: one with a slash is relative to the site's folder. Raises
    FileNotFoundError.
    """
    if "/" in name:
        return str(Path(folder, name).absolute())
    if found := subprocesses.find(name):
        return found
    raise FileNotFoundError


def environment() -> dict[str, str]:
    """This process's environment without secrets, for programs that it starts."""
    return {name: value for name, value in os.environ.items() if name not in WITHHELD}


def digest(value: str, salt: bytes | None = None, pepper: str = "") -> str:
    """A salted scrypt digest of a value that can be written but not read back: `scrypt$<salt>$<hash>`, both
    base64.

    Without `salt`, a random one that stays the same for this value in this process: a value that one run
    writes to many objects is digested once.
    """
    with _ONE_AT_A_TIME:
        salt = _salt(value, pepper) if salt is None else salt
        return (
            f"scrypt${base64.b64encode(salt).decode()}"
            f"${base64.b64encode(_scrypt(value, salt, pepper)).decode()}"
        )


def matches(value: str, stored: str, pepper: str = "") -> bool:
    """Return whether `stored` is a digest of `value`."""
    try:
        scheme, salt, _ = stored.split("$")
        again = digest(value, base64.b64decode(salt), pepper)
        return scheme == "scrypt" and hmac.compare_digest(again.encode(), stored.encode())
    except ValueError:
        return False


@functools.lru_cache(maxsize=1024)
def _salt(_value: str, _pepper: str) -> bytes:
    return os.urandom(16)


@functools.lru_cache(maxsize=1024)
def _scrypt(value: str, salt: bytes, pepper: str) -> bytes:
    return hashlib.scrypt((value + "\0" + pepper).encode(), salt=salt, n=2**14, r=8, p=1, dklen=32)


def _encodable(text: str) -> bool:
    """Return whether the text is UTF-8: Python keeps other bytes of the environment as halves of pairs."""
    return text == encodable(text)


def _reason(error: OSError | UnicodeDecodeError) -> str:
    """Why a command did not run, without its arguments, which may be secrets."""
    match error:
        case FileNotFoundError():
            return "there is no such program"
        case OSError(strerror=str(why)):
            return why
    return "it prints no UTF-8 text"
