"""Texts that mean something to some format, alone and in every order, for the tests of its writers."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

MEANINGS = (
    # lines and what hides
    *(
        "\n",
        "\r",
        "\r\n",
        "\t",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x85",
        "\u2028",
        "\u2029",
        "\x1b[2J",
        "\x07",
        "\x7f",
    ),
    *("\u202e", "\u2066", "\u200b", "\ufeff", "\xa0", "\xad", "\U000e0041"),
    # YAML
    *(
        "linux_host:",
        "key: {command: [id]}",
        ": ",
        " #",
        "# ",
        "- ",
        "? ",
        "&a",
        "*a",
        "!!python/object:os.x",
        "%YAML",
    ),
    *(
        "---",
        "...",
        "|",
        ">",
        "{",
        "}",
        "[",
        "]",
        ",",
        "~",
        "null",
        "yes",
        "y",
        "0x10",
        "0o17",
        "010",
        "1e3",
        "1:30",
    ),
    *("1_000", "2020-01-01", ".inf", "<<", "=", "@", "`"),
    # shells, cron, systemd, Dockerfiles, DOT, Mermaid, PowerShell
    *(
        "$(id)",
        "`id`",
        "${HOME}",
        "$HOME",
        "$$",
        "%",
        "%%",
        "%S",
        "\\",
        "\\\\",
        "\\%",
        "\\N",
        "\\x41",
        "\\n",
        "'",
        '"',
    ),
    *(
        ";",
        "&&",
        "||",
        "|",
        "&",
        ">",
        "<",
        "<<EOF",
        "*",
        "?",
        "~",
        "!",
        "-",
        "--",
        "=",
        "(",
        ")",
        "\u2018",
        "\u2019",
    ),
    *(
        "\u201a",
        "\u201b",
        "\u201c",
        "FROM",
        "RUN id",
        "escape=`",
        "ExecStartPre=/bin/id",
        "[Service]",
        "digraph",
        "->",
    ),
    *(
        "end",
        "#35;",
        "]",
        "<b>",
        "click",
        "Invoke-Expression",
        "[char]",
        "@files",
        "a",
        "b",
        " ",
        "é",
        "日",
        "\U0001f600",
    ),
)
CHARACTERS = "".join(
    chr(code) for code in (*range(0x300), *range(0x300, 0x11_0000, 0x61)) if not 0xD800 <= code <= 0xDFFF
)
"""All of Latin, and some of everything else."""
_PARTS = st.sampled_from(MEANINGS) | st.sampled_from(CHARACTERS)
TEXTS = st.lists(_PARTS, max_size=8).map("".join)
"""Any text of whole characters."""
GIVEN = TEXTS.map(lambda text: text.replace("\0", ""))
"""Any that a program can be given."""
WHOLE = st.lists(_PARTS | st.sampled_from(["\0", "\ud800", "\udcff", "\udfff"]), max_size=8).map("".join)
"""Also halves of characters."""
EXAMPLES = int(os.environ.get("BFINFRA_EXAMPLES", "40"))
"""How many texts each test tries. With the default the same ones each time."""
tried = settings(
    max_examples=EXAMPLES,
    derandomize="BFINFRA_EXAMPLES" not in os.environ,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate),  # a failure needs no hour of shrinking
    suppress_health_check=[HealthCheck.filter_too_much],
)
