"""Values that act where text meets an interpreter: a template, a shell, a command's options, a vault, a log. Each
is data; whatever takes one either hands it on byte for byte or refuses it by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

MIB = 1 << 20
UNENCODABLE = ("lone surrogate", "byte that is no UTF-8")  # no program can be handed these as text
NUL = ("NUL",)  # no argument, file name or variable of an environment can hold it
LONG = ("1 MiB",)  # one argument of a command holds 128 KiB


def values(canary: Path) -> Mapping[str, str]:
    """Name → value. What runs one as code leaves a file beside `canary`, whose name begins with canary's and
    ends with the value's (`ran`). `canary`: a path of letters, digits, `/`, `.`, `_` and `-`.
    """

    def mark(name: str) -> str:
        return f"touch {canary}.{name}"

    return {
        "jinja lookup": f"""{{{{ lookup("pipe", "{mark("lookup")}") }}}}""",
        "jinja comment and lookup": f"""# {{{{ lookup('ansible.builtin.pipe', '{mark("comment")}') }}}}\n""",
        "jinja query": f"""a {{{{ query('pipe', '{mark("query")}') | first }}}} b""",
        "jinja sudo": "# sudo={{ bfinfra_sudo }} {{ bfinfra_secrets }} {{ hostvars }}",
        "jinja expression": "{{ 7 * 191 }}",
        "jinja statement": f"""{{% if lookup("pipe", "{mark("statement")}") %}}x{{% endif %}}""",
        "jinja raw": f"""{{% endraw %}}{{{{ lookup("pipe", "{mark("raw")}") }}}}{{% raw %}}""",
        "jinja comment": "LIC-{#12345#}-END",
        "jinja half": "a {{ b",
        "jinja end": "a }} b %} c #} d",
        "jinja setting": '#jinja2: variable_start_string:"<<"\n<< 7 * 191 >>',
        "template of Go": "{{.ImageName}}/{{.Name}}",
        "unsafe": '{"__ansible_unsafe": "a"}',
        "vault": "$ANSIBLE_VAULT;1.1;AES256\n6162636465666768",
        "python": f"__import__('os').system('{mark('python')}')",
        "list": "['a', 'b']",
        "mapping": "{a: 1}",
        "true": "yes",
        "null": "null",
        "number": "0x1F",
        "substitution": f"$({mark('substitution')})",
        "backticks": f"`{mark('backticks')}`",
        "semicolon": f"a; {mark('semicolon')} #",
        "and": f"a && {mark('and')}",
        "or": f"/nowhere || {mark('or')}",
        "pipe": f"a | {mark('pipe')}",
        "background": f"a & {mark('background')} &",
        "redirection": f"a > {canary}.redirection",
        "new line": f"a\n{mark('newline')}\n",
        "quoted": f"""a'; {mark("single")}; 'b""",
        "double quoted": f"""a"; {mark("double")}; "b""",
        "backslash": "a\\nb\\",
        "variable": "$HOME ${HOME}",
        "home": "~",
        "home of root": "~root/x",
        "percent": "%s %n %h %% %(x)s",
        "glob": "/* [a-c]? {a,b}",
        "option": "--help",
        "option of ssh": f"-oProxyCommand={mark('proxy')}",
        "option with a value": f"--config={canary}.option",
        "dash": "-",
        "two dashes": "--",
        "range": "h[01:50]",
        "pattern": "a,b:!c:&d",
        "path": "../../etc/passwd",
        "equals": "a=b c=d",
        "empty": "",
        "spaces": "  a  ",
        "carriage return": "a\r\nb\r",
        "tab": "a\tb",
        "escape": "\x1b]52;c;cm0=\x07\x1b[2J",
        "bidirectional": "\u202egpj.exe\u2066\u2069",
        "line separator": "a\u2028b\u2029c\x85d",
        "log of CI": "##vso[task.setvariable variable=a]b\n::set-output name=a::b\n%0A::add-mask::c",
        "not ASCII": "é日本\U0001f600",
        "NUL": "a\0b",
        "lone surrogate": "a\ud800b",
        "byte that is no UTF-8": "a\udcffb",
        "1 MiB": f"""{{{{ lookup("pipe", "{mark("long")}") }}}}{"x" * MIB}""",
    }


def ran(canary: Path) -> list[str]:
    """What was run: the names of the files that the values leave."""
    return sorted(path.name for path in canary.parent.glob(f"{canary.name}.*"))
