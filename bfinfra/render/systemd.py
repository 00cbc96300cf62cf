"""Units for systemd: a drift check by a timer, or a watch that keeps running. Only texts; nothing is
installed.
"""

from __future__ import annotations

from bfinfra.formats import systemd
from bfinfra.render.schedule import ScheduledCheck

HARDENED = [
    ("NoNewPrivileges", "yes"),
    ("CapabilityBoundingSet", ""),
    ("ProtectSystem", "strict"),
    ("ProtectHome", "read-only"),
    ("PrivateTmp", "yes"),
    ("PrivateDevices", "yes"),
    ("ProtectClock", "yes"),
    ("ProtectControlGroups", "yes"),
    ("ProtectHostname", "yes"),
    ("ProtectKernelLogs", "yes"),
    ("ProtectKernelModules", "yes"),
    ("ProtectKernelTunables", "yes"),
    ("RestrictAddressFamilies", "AF_INET AF_INET6 AF_UNIX"),
    ("RestrictNamespaces", "yes"),
    ("RestrictRealtime", "yes"),
    ("RestrictSUIDSGID", "yes"),
    ("LockPersonality", "yes"),
    ("SystemCallArchitectures", "native"),
    ("SystemCallFilter", "@system-service"),
    ("SystemCallErrorNumber", "EPERM"),
    ("ProtectProc", "invisible"),
    ("ProcSubset", "pid"),
    ("RemoveIPC", "yes"),
    ("UMask", "0077"),
]
STARTS = 1800  # seconds for the first survey of a watch
WATCHDOG = 300  # seconds without a sign of life after which systemd starts a watch again
AGAIN = 30  # seconds until a watch that ended is started again


NETWORK = [("Wants", "network-online.target"), ("After", "network-online.target")]


def timed(check: ScheduledCheck, user: str = "") -> dict[str, str]:
    """File name → unit, of a drift check. `user`: who runs it, by default a temporary user. Drift ends with
    2, so that OnFailure= in a drop-in can send a notification. Raises Unwritable.
    """
    service = systemd.unit(
        {
            "Unit": [("Description", systemd.words(f"bfinfra drift check of {check.site}")), *NETWORK],
            "Service": [
                ("Type", "oneshot"),
                *_run(check, check.name, user),
                ("ExecStart", systemd.command((check.program, "drift", "--changes-only", *check.words))),
                ("TimeoutStartSec", f"{max(check.when.seconds, 300)}"),
                *HARDENED,
            ],
        }
    )
    timer = systemd.unit(
        {
            "Unit": [("Description", systemd.words(f"bfinfra drift checks of {check.site}"))],
            "Timer": [("OnCalendar", check.when.calendar), ("Persistent", "yes")],
            "Install": [("WantedBy", "timers.target")],
        }
    )
    return {f"{check.name}.service": service, f"{check.name}.timer": timer}


def watching(check: ScheduledCheck, user: str = "") -> dict[str, str]:
    """File name → unit, of a watch. It is started again whenever it ends, unless somebody stops it; then an
    end with 2, drift, is no failure. A stop reaches the watch first, which ends what it started. Raises
    Unwritable.
    """
    name = check.name.replace("bfinfra-drift-", "bfinfra-watch-", 1)
    about = systemd.words(f"bfinfra watch of {check.site}")
    service = systemd.unit(
        {
            "Unit": [("Description", about), *NETWORK, ("StartLimitIntervalSec", "0")],
            "Service": [
                ("Type", "notify"),
                *_run(check, name, user),
                ("ExecStart", systemd.command((check.program, "watch", *check.words))),
                ("SuccessExitStatus", "2"),
                ("Restart", "always"),
                ("RestartSec", f"{AGAIN}"),
                ("TimeoutStartSec", f"{STARTS}"),
                ("WatchdogSec", f"{WATCHDOG}"),
                ("KillMode", "mixed"),
                *HARDENED,
            ],
            "Install": [("WantedBy", "multi-user.target")],
        }
    )
    return {f"{name}.service": service}


def _run(check: ScheduledCheck, name: str, user: str) -> systemd.Settings:
    """Who runs it, with which variables, and where it keeps its state."""
    needs = [
        ("#", f"{', '.join(check.env)}: one NAME=value a line, mode 0600"),
        ("EnvironmentFile", systemd.path(check.variables)),
    ]
    return [
        ("User", systemd.user(user)) if user else ("DynamicUser", "yes"),
        *(needs if check.env else ()),
        ("Environment", f"BFINFRA_STATE_HOME=%S/{name}"),
        ("StateDirectory", name),
        ("StateDirectoryMode", "0700"),
    ]
