"""Names that mean something to what reads the output: CI systems, Markdown, HTML, XML, terminals."""

from __future__ import annotations

from bad_input.nasty import ESCAPES

COMMANDS = (
    "##vso[task.setvariable variable=PATH;isOutput=true]/tmp", "###vso[task.complete result=Succeeded;]", "##[add-mask]a",
    "##[error]a", "##teamcity[buildStop comment='x' readdToQueue='true']", "::set-env name=PATH::/tmp", " \t::add-mask::a",
    "::stop-commands::x", "::set-output name=a::b%0A::add-mask::c", "a\n::set-env name=x::y", "a\r::add-path::/tmp",
    "section_start:1560896352:a[collapsed=true]\r\x1b[0K", "\x1b[8mha:AAAA\x1b[0m", "\x1b]1338;url='http://evil.test'\x07",
    "a\u2028::add-mask::b", "#\u200b#vso[task.logissue]", "\x1b[31m::add-path::/tmp", "::", ":::a::", "##", "##[", "::1",
)  # fmt: skip
MARKUP = (
    "@root", "root@evil.test", "#1", "org/repo#1", "!1", "GH-1", "https://evil.test/x", "www.evil.test", "mailto:a@evil.test",
    "![x](https://evil.test)", "[x](javascript:alert(1))", "[x]: https://evil.test", "<img src=x onerror=alert(1)>", "<!--", "-->",
    "</details>", "a|b", "a\\|b", "\\", "`", "``a``", "a`|`b", "1. a", "12345) a", "- a", "+ a", "= a", "---", "    a", "# a", "> a",
    "*a*", "_a_", "__a__", "~~a~~", "[^1]", "$a$", "&lt;", "&amp;", "&#64;root", ":a:", "xmpp:a@b.c/d", "\ta", " a ",
    "</title><script>alert(1)</script>", '"><a href=javascript:alert(1)>', "' onmouseover='alert(1)", "]]>", "<![CDATA[", "<?x?>",
    "&#0;", "&#x1b;", "<wbr>", "a/b.c_d\\e", "</style>", "</svg>", "{{ x }}", "a\nb", "a\r\nb", "a\u2028b", "a\x85b",
)  # fmt: skip
LISTED = (*COMMANDS, *MARKUP, *ESCAPES)
