"""Units for systemd: a drift check by a timer, or a watch that keeps running. Only texts; nothing is
installed.
"""

from __future__ import annotations

from bfinfra.render.schedule import ScheduledCheck

HARDENED = """\
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
ProtectProc=invisible
ProcSubset=pid
RemoveIPC=yes
UMask=0077
"""
STARTS = 1800  # seconds for the first survey of a watch
WATCHDOG = 300  # seconds without a sign of life after which systemd starts a watch again
AGAIN = 30  # seconds until a watch that ended is started again


def timed(check: ScheduledCheck, user: str = "") -> dict[str, str]:
    """File name → unit, of a drift check. `user`: who runs it, by default a temporary user. Drift ends with
    2, so that OnFailure= in a drop-in can send a notification.
    """
    service = (
        _unit(f"bfinfra drift check of {check.site}")
        + f"\n[Service]\nType=oneshot\n{_run(check, check.name, user)}"
        f"ExecStart={_command(check, 'drift', '--changes-only')}\n"
        f"TimeoutStartSec={max(check.when.seconds, 300)}\n{HARDENED}"
    )
    timer = (
        f"[Unit]\nDescription=bfinfra drift checks of {_specifiers(check.site)}"
        f"\n\n[Timer]\nOnCalendar={check.when.calendar}\nPersistent=yes\n\n"
        "[Install]\nWantedBy=timers.target\n"
    )
    return {f"{check.name}.service": service, f"{check.name}.timer": timer}


def watching(check: ScheduledCheck, user: str = "") -> dict[str, str]:
    """File name → unit, of a watch. It is started again whenever it ends, unless somebody stops it; then an
    end with 2, drift, is no failure. A stop reaches the watch first, which ends what it started.
    """
    name = check.name.replace("bfinfra-drift-", "bfinfra-watch-", 1)
    service = (
        _unit(f"bfinfra watch of {check.site}", "StartLimitIntervalSec=0")
        + f"\n[Service]\nType=notify\n{_run(check, name, user)}"
        f"ExecStart={_command(check, 'watch')}\nSuccessExitStatus=2\nRestart=always\nRestartSec={AGAIN}\n"
        f"TimeoutStartSec={STARTS}\nWatchdogSec={WATCHDOG}\nKillMode=mixed\n{HARDENED}\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )
    return {f"{name}.service": service}


def _unit(about: str, *more: str) -> str:
    network = ("Wants=network-online.target", "After=network-online.target")
    return "\n".join(("[Unit]", f"Description={_specifiers(about)}", *network, *more, ""))


def _run(check: ScheduledCheck, name: str, user: str) -> str:
    """Who runs it, with which variables, and where it keeps its state."""
    who = f"User={user}" if user else "DynamicUser=yes"
    needs = (
        (
            f"# {', '.join(check.env)}: one NAME=value a line, mode "
            f"0600\nEnvironmentFile={_specifiers(check.variables)}\n"
        )
        if check.env
        else ""
    )
    return (
        f"{who}\n{needs}Environment=BFINFRA_STATE_HOME=%S/{name}"
        f"\nStateDirectory={name}\nStateDirectoryMode=0700\n"
    )


def _command(check: ScheduledCheck, *verb: str) -> str:
    return " ".join(map(_unit_word, (check.program, *verb, *check.words)))


def _specifiers(text: str) -> str:
    return text.replace("%", "%%")


def _unit_word(word: str) -> str:
    """A word of ExecStart, with specifiers, variables and quotes escaped."""
    plain = _specifiers(word).replace("$", "$$")
    return (
        plain
        if all(c.isalnum() or c in "-_./%$:=+@," for c in plain)
        else '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
    )
