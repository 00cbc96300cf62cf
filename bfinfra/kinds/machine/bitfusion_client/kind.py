"""The kind bitfusion_client: observe, readiness, run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from bfinfra.kinds.client_files import read_files, token_files
from bfinfra.kinds.linux import Answers, Commands
from bfinfra.kinds.machine.base import Adopt, LinuxSoftware, Reading, record_texts
from bfinfra.kinds.machine.bitfusion_client import decide
from bfinfra.kinds.machine.bitfusion_client.decide import Remove, SetUp
from bfinfra.kinds.machine.bitfusion_client.spec import Spec
from bfinfra.kinds.machine.bitfusion_client.state import (
    NAME,
    SHARED,
    BitfusionClientFacts,
    Installed,
    State,
    look,
    read,
)
from bfinfra.kinds.sent_files import CACHE, sent
from bfinfra.model import kind
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.errors import BfinfraError
from bfinfra.model.readiness import Readiness, Ready, failed, waiting
from bfinfra.model.redact import hide
from bfinfra.model.refs import Key
from bfinfra.model.sources import LocalFile
from bfinfra.model.step import Step

TIMEOUT = 120  # seconds for list_gpus


class BitfusionClient(LinuxSoftware[Spec, State, Installed]):
    """A Bitfusion client on Linux machines."""

    document = Document.CONSOLIDATED
    step_types = (SetUp, Adopt, Remove)
    name = role = NAME

    def commands(self, host: str, specs: Sequence[Spec]) -> Commands:
        """Reads what any resource wants on the machine, and the files that the machine provides to others."""
        return look(host, specs)

    def read(self, host: str, answers: Answers) -> Installed:
        """From the machine's answers."""
        return read(answers)

    def packages(self, spec: Spec) -> Mapping[str, LocalFile]:
        """The client's package."""
        return {"package": spec.package}

    def askable(self, spec: Spec) -> tuple[str, ...]:
        """Its machines, and the machine that provides the files."""
        return spec.asked

    def facts(self, specs: Mapping[str, Spec], reading: Reading[Installed]) -> BitfusionClientFacts:
        """Adds the tokens."""
        known = super().facts(specs, reading)
        return BitfusionClientFacts(
            known.machines,
            known.found,
            known.packages,
            known.away,
            {name: _digests(spec, reading.answers, reading.needs) for name, spec in specs.items()},
        )

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Installs where something differs, on all such machines in parallel; removes where it is no longer
        wanted.
        """
        return decide.steps(name, spec, state, context)

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready when `bitfusion list_gpus` succeeds for every user."""
        if not spec.list_gpus:
            return Readiness(Ready.READY)
        commands = {
            user.name: ("sudo", "-n", "-H", "-u", user.name, "--", "bitfusion", "list_gpus")
            if user.name != "root"
            else ("bitfusion", "list_gpus")
            for user in spec.users
        }
        for machine, found in self._hosts.read(
            {machine: commands for host, machine in state.machines.items() if host in spec.hosts}, TIMEOUT
        ).items():
            if isinstance(found, BfinfraError):
                return waiting(f"{machine.name} does not answer: {found}")
            for user, answer in found.items():
                if not answer.ok:
                    output = " ".join(answer.text.split())[-300:]
                    return (waiting if "responded correctly" in output or "timeout" in output else failed)(
                        f"bitfusion list_gpus of {user} on {machine.name}: {output or answer.code}"
                    )
        return Readiness(
            Ready.READY,
            note=(
                f"list_gpus succeeds for {', '.join(user.name for user in spec.users)} on "
                f"{', '.join(spec.hosts)}"
            ),
        )

    def run(self, step: Step, report: kind.Report) -> None:
        """Runs one step, as one play on all its machines."""
        match step:
            case SetUp():
                self._set_up(step)
            case Remove():
                each = {
                    host: {
                        "form": noted.get("package", "").rpartition(".")[2],
                        "files": _files_of(noted),
                        "folders": [folder for folder in noted.get("folders", "").split(",") if folder],
                    }
                    for host, noted in step.noted.items()
                }
                self._play(step, each, "remove")
            case Adopt():
                self._play(step, step.records, "begin")
            case _:
                raise AssertionError(step)

    def _set_up(self, step: SetUp) -> None:
        texts = self._texts(step)
        digests = ",".join(
            f"{name}:{hashlib.sha256(text.encode()).hexdigest()}" for name, text in sorted(texts.items())
        )
        noted = [*decide.note(step.package, [folder for _, folder in step.users] if texts else [])]
        if step.token:
            noted.append(f"token={digests}")
        common: dict[str, Any] = {
            "package": sent(step.package),
            "package_sha256": step.package_sha256,
            "unfinished": True,
            "token": bool(texts),
            "group": step.group,
            "users": [{"name": name, "path": folder} for name, folder in step.users],
            **record_texts(step.mark, *noted),
        }
        each = {host: {**common, "install": install} for host, install in step.install.items()}
        self._play(step, each, texts=texts)

    def _texts(self, step: SetUp) -> dict[str, str]:
        """The token's files, or those of the machine that provides them."""
        if step.giver is None:
            return (
                {
                    name: hide(text) if name == "client.yaml" else text
                    for name, text in token_files(str(step.token)).items()
                }
                if step.token
                else {}
            )
        return read_files(self._hosts, step.giver, step.given)


def _digests(spec: Spec, answers: Mapping[str, Answers], needs: Mapping[Key, ResolvedRef]) -> dict[str, str]:
    """SHA-256 of the token's files, or of those that another machine provides."""
    if spec.client_files:
        return spec.client_files.digests(answers.get(spec.client_files.host, {}))
    return _token(spec, needs)


def _token(spec: Spec, needs: Mapping[Key, ResolvedRef]) -> dict[str, str]:
    """SHA-256 of the token's files, if they can be read. The bitfusion_token itself reports what is wrong
    with it.
    """
    need = needs.get(Key("bitfusion_token", spec.token or ""))
    if need is None or need.state is None:
        return {}
    return {
        name: hashlib.sha256(text.encode()).hexdigest() for name, text in token_files(need.state.path).items()
    }


def _files_of(noted: Mapping[str, str]) -> list[str]:
    """The paths of what was copied to a machine: the token's files, and the package."""
    folders = [folder for folder in noted.get("folders", "").split(",") if folder]
    own = [f"{folder}/client.yaml{ending}" for folder in folders for ending in ("", ".new")]
    package = [f"{CACHE}/{noted['package']}"] if noted.get("package") else []
    return [*((*SHARED.values(), *own) if folders else ()), *package]
