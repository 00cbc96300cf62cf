"""Graphs in DOT and Mermaid: the nodes and arrows that were written, and no other. tests/peers/test_formats.py
holds DOT to Graphviz.
"""

from __future__ import annotations

import re

from formats.texts import TEXTS, tried
from hypothesis import example, given
from hypothesis import strategies as st

from bfinfra.formats import graphviz, mermaid
from bfinfra.formats.visible import visible

DOT = re.compile(r'"(?P<quoted>(?:\\.|[^"\\])*)"|(?P<other>->|[A-Za-z]+|[{}\[\]=;,])|\s+', re.DOTALL)
NUMBER = re.compile(r"#(\d+);")


def tokens(text: str) -> list[str]:
    """The tokens of DOT; one in quotes with a quote before it."""
    found, at = [], 0
    while at < len(text):
        token = DOT.match(text, at)
        assert token, text[at:]
        at = token.end()
        if token["quoted"] is not None:
            found.append('"' + re.sub(r"\\(.)", r"\1", token["quoted"]))
        elif token["other"]:
            found.append(token["other"])
    return found


@tried
@given(TEXTS, TEXTS, TEXTS)
@example('a"];b', "\\", "\\N")
def test_dot_holds_one_graph_two_nodes_and_one_arrow(one: str, two: str, why: str) -> None:
    written = graphviz.digraph(one, ["rankdir=LR"], [one, two], [(one, two, {"label": why})])
    names = [re.sub('^"%', r'"\\x25', f'"{visible(each)}') for each in (one, two, why)]
    assert tokens(written) == [
        *("digraph", names[0], "{", "rankdir", "=", "LR", ";", names[0], ";", names[1], ";"),
        *(names[0], "->", names[1], "[", "label", "=", names[2], "]", ";", "}"),
    ]


@tried
@given(st.lists(TEXTS, min_size=2, max_size=4), TEXTS.filter(bool))
@example(['a"]; click r0 "javascript:x"', "end"], "-->")
def test_mermaid_holds_a_line_for_each_node_and_arrow(texts: list[str], why: str) -> None:
    nodes = {f"r{number}": text for number, text in enumerate(texts)}
    first, *lines = mermaid.flowchart(nodes, [("r0", "r1", why)]).split("\n")
    assert first == "flowchart LR"
    shapes = [re.fullmatch(r'  (r\d)\["([^"]*)"\]', line) for line in lines[:-1]]
    arrow = re.fullmatch(r'  r0 -\. "([^"]*)" \.-> r1', lines[-1])
    assert all(shapes)
    assert arrow

    def read(quoted: str) -> str:
        assert not set(NUMBER.sub("", quoted)) & set("\"`[]{}()<>|;:#&%\\'*$=")
        return NUMBER.sub(lambda number: chr(int(number[1])), quoted)

    assert {shape[1]: read(shape[2]) for shape in shapes if shape} == {
        n: visible(t) for n, t in nodes.items()
    }
    assert read(arrow[1]) == visible(why)
