"""What a task of a role may do with a value, as text that came from elsewhere must stay data: on this machine, in the
arguments of a program, in a path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, nodes

from bfinfra.backends.ansible.inert import PATHS

BUILTIN = "ansible.builtin."
MODULES = {
    "command",
    "copy",
    "fail",
    "file",
    "import_role",
    "import_tasks",
    "stat",
    "systemd_service",
    "user",
}
"""None of these evaluates a value, or gives it to a shell."""
AROUND = {
    "name", "when", "register", "loop", "loop_control", "changed_when", "failed_when", "check_mode", "no_log", "environment", "vars",
}  # fmt: skip
"""Keywords of a task: none sets where it runs, as whom, or what is a fact."""
PATH_ARGUMENTS = ("path", "dest", "creates", "removes")
WORDS = {"words", "drain", "load", "show", "used", "remove", "uninstall", "apt_options"}
"""Variables that are words of a command with its options: a kind puts them together."""
FORBIDDEN = {"lookup", "query", "q", "hostvars", "vars", "groups", "env"}
ENVIRONMENT = Environment(autoescape=False)
ENVIRONMENT.filters |= {"dirname": str}


def tasks(path: Path) -> Iterator[dict[str, Any]]:
    """All tasks of a file, those of its blocks too."""
    yield from _flat(yaml.safe_load(path.read_text()))


def _flat(given: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for each in given:
        inner = [task for part in ("block", "rescue", "always") for task in each.get(part, ())]
        yield from _flat(inner) if inner else (each,)


def complaints(task: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a task."""
    modules = [name for name in task if name.startswith(BUILTIN) or name not in AROUND]
    if len(modules) != 1 or modules[0].removeprefix(BUILTIN) not in MODULES or BUILTIN not in modules[0]:
        yield f"{', '.join(modules)}: not among what roles may do"
        return
    module, given = modules[0].removeprefix(BUILTIN), task[modules[0]]
    for text in (*_texts([each for key, each in task.items() if key != "name"]), *_conditions(task)):
        yield from _forbidden(text)
    if isinstance(given, Mapping):
        yield from _arguments(module, given, task)
    elif module != "import_tasks":
        yield f"{module}: arguments are a mapping"


def _arguments(module: str, given: Mapping[str, Any], task: Mapping[str, Any]) -> Iterator[str]:
    if "bfinfra_secrets" in str(given) and not task.get("no_log"):
        yield "reads a secret without no_log"
    if "{{" in str(task.get("environment", "")):
        yield "puts a value into an environment"
    for name in PATH_ARGUMENTS:
        if name in given and (strange := _roots(str(given[name]), task) - PATHS):
            yield f"{name}: {', '.join(sorted(strange))} is checked nowhere as a path"
    if module == "file" and "{{" in str(given.get("owner", "")) and given.get("follow") is not False:
        yield "file: follows a link that the owner may have put there"
    if module in RULES:
        yield from RULES[module](given, task)


def _copy(given: Mapping[str, Any], task: Mapping[str, Any]) -> Iterator[str]:
    if given.get("decrypt") is not False:
        yield "copy: decrypt is not false, and a text may begin as a vault does"
    if "src" in given and _roots(str(given["src"]), task) != {"source"}:
        yield "copy: src is no file that was handed over (source)"
    if "{{" in str(given.get("owner", "")):
        yield "copy: root writes into a folder that is another user's"


def _command(given: Mapping[str, Any], task: Mapping[str, Any]) -> Iterator[str]:
    if "argv" not in given or {"cmd", "_raw_params", "chdir"} & given.keys():
        yield "command: not by argv"
        return
    if "{{" in str(given) and given.get("expand_argument_vars") is not False:
        yield "command: expand_argument_vars is not false"
    if "stdin" in given and given.get("stdin_add_newline") is not False:
        yield "command: stdin_add_newline is not false"
    argv = given["argv"]
    yield from _composed(argv) if isinstance(argv, str) else _listed(argv, task)


def _listed(argv: Sequence[object], task: Mapping[str, Any]) -> Iterator[str]:
    """Each word by itself."""
    for at, word in enumerate(map(str, argv)):
        before = [str(each) for each in argv[:at]]
        if "{{" not in word:
            continue
        if before[-1:] == ["-c"]:
            yield f"command: a shell reads {word}"
        elif at == 0:
            yield f"command: a value names the program: {word}"
        elif not word.startswith("{{") or _roots(word, task) <= PATHS or "--" in before:
            continue
        elif not before[-1].startswith("-"):
            yield f"command: {word} may begin with a dash"


def _composed(argv: str) -> Iterator[str]:
    """Lists that are joined: `['apt-get'] + words + ['--'] + names`."""
    ended = False
    for part in _parts(_expression(argv)):
        if isinstance(part, nodes.List):
            words = [each.value if isinstance(each, nodes.Const) else None for each in part.items]
            if None in words[: words.index("--") if "--" in words else len(words)] and not ended:
                yield "command: a value among the words may begin with a dash"
            ended |= "--" in words
        elif isinstance(part, nodes.CondExpr):
            yield from _composed_choice(part)
        elif not ended and not (isinstance(part, nodes.Name) and part.name in WORDS):
            yield "command: words that no -- stands before"


def _composed_choice(part: nodes.CondExpr) -> Iterator[str]:
    """One list or another: constants, options, and the value of an option."""
    for each in (part.expr1, part.expr2):
        for inner in _parts(each) if each is not None else ():
            if isinstance(inner, nodes.Name) and inner.name in WORDS:
                continue
            if not isinstance(inner, nodes.List):
                yield "command: words that no -- stands before"
                continue
            for at, word in enumerate(inner.items):
                option = inner.items[at - 1] if at else None
                if not isinstance(word, nodes.Const) and not (
                    isinstance(option, nodes.Const) and str(option.value).startswith("-")
                ):
                    yield "command: a value among the words may begin with a dash"


def _parts(expression: nodes.Node) -> Iterator[nodes.Node]:
    if isinstance(expression, nodes.Add):
        yield from _parts(expression.left)
        yield from _parts(expression.right)
    else:
        yield expression


def _expression(text: str) -> nodes.Node:
    (output,) = ENVIRONMENT.parse(text).body
    assert isinstance(output, nodes.Output)
    (expression,) = output.nodes
    return expression


def _forbidden(text: str) -> Iterator[str]:
    for name in {each.name for each in _names(text)} & FORBIDDEN:
        yield f"uses {name}"


def _names(text: str) -> Iterator[nodes.Name]:
    if "{{" in text:
        yield from ENVIRONMENT.parse(text).find_all(nodes.Name)
    elif "{%" in text:
        raise AssertionError(f"{text}: a statement")


def _roots(text: str, task: Mapping[str, Any]) -> set[str]:
    """The variables that a text is made of; of a mapping, the name of the part; of `item`, what the loop is over."""
    found: set[str] = set()
    for expression in ENVIRONMENT.parse(text).find_all((nodes.Getattr, nodes.Name)):
        if isinstance(expression, nodes.Getattr):
            found.add(expression.attr)
        elif expression.name == "item" and isinstance(task.get("loop"), str):
            if "item." not in text:
                found |= _roots(task["loop"], {})
        elif f"{expression.name}." not in text and expression.name != "item":
            found.add(expression.name)
    return found


def used(path: Path) -> set[str]:
    """The variables that a file of tasks takes: all but those that it registers, loops over or is given by Ansible."""
    every = list(tasks(path))
    texts = [*_texts(every), *(text for task in every for text in _conditions(task))]
    own = {task["register"] for task in every if "register" in task}
    own |= {task.get("loop_control", {}).get("index_var") for task in every}
    own |= {name for task in every for name in task.get("vars", {})}
    named = {name.name for text in texts for name in _names(text)}
    return named - own - {"item", "omit", "ansible_check_mode", "apt_options", "package_names"}


RULES = {"copy": _copy, "command": _command}


def _conditions(task: Mapping[str, Any]) -> Iterator[str]:
    """As templates."""
    for key in ("when", "failed_when", "changed_when"):
        if isinstance(text := task.get(key), str):
            yield f"{{{{ {text} }}}}"


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each)
