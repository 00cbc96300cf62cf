"""The CEL expressions of device selectors that the sandbox evaluates: driver and attributes of a device,
compared with literals by `==` and `!=`, joined by `&&`, `||` and parentheses, as NVIDIA's device classes use
them. Every other expression is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from bfinfra.sandbox.kubernetes.objects import Object

TOKEN = re.compile(
    r"\s*(?:(?P<driver>device\.driver\b)"
    r"|(?P<attribute>device\.attributes\[(?P<quote>['\"])(?P<domain>[^'\"\\]+)(?P=quote)\]\.(?P<id>[A-Za-z_]\w*))"
    r"|(?P<text>'[^'\\]*'|\"[^\"\\]*\")"
    r"|(?P<number>-?\d+)\b"
    r"|(?P<truth>true|false)\b"
    r"|(?P<sign>==|!=|&&|\|\||\(|\)))"
)
KINDS = ("string", "int", "bool")
"""The kinds of an attribute's value that a literal can equal; a version equals none."""

Test = Callable[[str, Object], bool]
Value = tuple[str, object]


class Unsupported(ValueError):
    """An expression that the sandbox can't evaluate, and where it stops to understand it."""


class NoSuchKey(LookupError):
    """A device lacks an attribute that an expression reads."""


@dataclass
class _Tokens:
    text: str
    at: int = 0

    def take(self, *kinds: str, sign: str = "") -> re.Match[str] | None:
        """The next token if it is of one of these kinds, or this sign."""
        found = TOKEN.match(self.text, self.at)
        if found is None or found.lastgroup is None:
            return None
        if (sign and found["sign"] == sign) or any(found[kind] is not None for kind in kinds):
            self.at = found.end()
            return found
        return None


def compiled(expression: str) -> Test:
    """A test of a device, by its driver and itself. It raises NoSuchKey as CEL does: an attribute that the
    device lacks is an error, unless the other side of `&&` or `||` decides. Raises Unsupported.
    """
    tokens = _Tokens(expression)
    test = _joined(tokens, "||")
    if expression[tokens.at :].strip():
        raise _unsupported(tokens)
    return test


def _joined(tokens: _Tokens, sign: str) -> Test:
    """Tests with `||` or `&&` between them, which binds tighter."""
    tests = [_below(tokens, sign)]
    while tokens.take(sign=sign):
        tests.append(_below(tokens, sign))
    return tests[0] if len(tests) == 1 else _decided(tests, by=sign == "||")


def _below(tokens: _Tokens, sign: str) -> Test:
    return _joined(tokens, "&&") if sign == "||" else _single(tokens)


def _decided(tests: list[Test], *, by: bool) -> Test:
    """`by`: the result of one test that decides, whether or not others fail."""

    def test(driver: str, device: Object) -> bool:
        missing: NoSuchKey | None = None
        for each in tests:
            try:
                if each(driver, device) is by:
                    return by
            except NoSuchKey as error:
                missing = missing or error
        if missing:
            raise missing
        return not by

    return test


def _single(tokens: _Tokens) -> Test:
    if tokens.take(sign="("):
        test = _joined(tokens, "||")
        if not tokens.take(sign=")"):
            raise _unsupported(tokens)
        return test
    left = tokens.take("driver", "attribute")
    sign = left and (tokens.take(sign="==") or tokens.take(sign="!="))
    right = sign and tokens.take("text", "number", "truth")
    if not left or not sign or not right:
        raise _unsupported(tokens)
    literal, equal = _literal(right), sign["sign"] == "=="
    if left["driver"] is not None:
        if literal[0] != "string":
            raise _unsupported(tokens)  # CEL knows that the driver is a string
        return lambda driver, _: (literal[1] == driver) is equal
    domain, name = left["domain"], left["id"]
    return lambda driver, device: (_attribute(driver, device, domain, name) == literal) is equal


def _literal(found: re.Match[str]) -> Value:
    if found["text"] is not None:
        return "string", found["text"][1:-1]
    return (
        ("int", int(found["number"])) if found["number"] is not None else ("bool", found["truth"] == "true")
    )


def _attribute(driver: str, device: Object, domain: str, name: str) -> Value:
    """The kind and value of an attribute; one without a domain is of the driver's."""
    attributes = device.get("attributes") or {}
    found = attributes.get(f"{domain}/{name}", attributes.get(name) if domain == driver else None)
    if found is None:
        raise NoSuchKey(f"no such key: {name}")
    return next(((kind, found[kind]) for kind in KINDS if kind in found), ("other", found))


def _unsupported(tokens: _Tokens) -> Unsupported:
    rest = tokens.text[tokens.at :].strip()[:40]
    return Unsupported(f"the sandbox does not implement this CEL expression, from {rest!r} on")
