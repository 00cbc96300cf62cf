"""Pieces that break parsers and terminals, and what must never reach a screen."""

from __future__ import annotations

import re

ESCAPES = (
    "\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;http://evil.test\x07click\x1b]8;;\x07", "\x1b]52;c;cm0gLXJm\x07", "\x9b31m", "\x9d52;c;AAAA\x9c", "\x90q\x9c", "\r\x1b[K", "\b\b\b",
    "\u202egpj.exe", "\u2066\u2069", "\u200f", "\u2028", "\u2029", "\x85", "\ufeff", "\u200b", "\U000e0041", "\x00", "\x7f", "\x0b", "\x0c", "\ud800", "\uffff", "\ue000",
)  # fmt: skip
WORDS = (
    "", "~", "null", "no", "on", "0", "-1", "1e999", ".nan", ".inf", "0x7fffffffffffffffffffffff", "9" * 5000, "-" * 300, "1:20:30", "2026-11-21", "1_000", "0o17", "=", "<<",
    "é", "ß" * 100, "日本", "a/b", "../../etc/passwd", "/dev/zero", "/dev/stdin", "/proc/self/environ", "~nobody/x", ".", "..", "a" * 300, "a" * 5000, "x" * 70_000, "%s%n{0}",
    "{env: HOME}", "${HOME}", "$(id)", "`id`", "a\nb", "a\tb", " ", "\\", "'", '"', "10.0.0.0/99", "::1%eth0", "999.1.1.1", "128GiB", "1e400GiB", "0.0000001B", "99999999999999999999TiB",
    "١٢٣", "²", "1²", "v1.²", "٣GiB", "\u0660x10de", "ﬁ", "\u0130", "K",
)  # fmt: skip
YAML = (
    "&a ", "*a", "*b ", "<<: ", "<<: *a\n", "<<: [*a, *a]\n", "!!python/object/apply:os.system [id]", "!!binary ", "!!float ", "!x ", "!<tag:x> ", "? ", "? [a]\n: b\n", "- ", ": ", "---\n", "...\n",
    "%YAML 1.1\n", "%TAG ! tag:x,2000:\n", "|\n", ">-\n", "|9\n", "#", "\t", "{", "}", "[", "]", ",", "'", '"', "@", "`", "\r", "\r\n", "\n\n", "\ufeff", "[" * 40, "[" * 70, "{a: " * 70, "- " * 70,
    "&a [*a, *a]", "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
    '"\\x1b]52;c;AA\\a"', '"\\ud800"', '"\\u202e"', '"\\0"', '"\\N"',
)  # fmt: skip
BYTES = (b"\x00", b"\xff", b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x1b", b"\x9b", b"\xc2\x9b", b"\r", b"\x85", b"\xe2\x80\xae")

COLOURS = re.compile(r"\x1b\[[\d;]*m")  # what bfinfra itself paints with


def acts(printed: str) -> list[str]:
    """The characters in a command's output that act on a terminal, hide or reorder text."""
    plain = COLOURS.sub("", printed).replace("@\u200b", "@")  # how markdown keeps a name from being called
    return sorted({repr(c) for c in plain if c != "\n" and not c.isprintable()})
