"""Completion scripts for bash, zsh and fish, made from the parser itself: they can't know other words than it
does.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from bfinfra.model.records import dataclass

FILES = "@files"


@dataclass(frozen=True)
class Option:
    """An option: its spellings, what it does, the words it takes (FILES for anything else, empty for a
    switch).
    """

    flags: tuple[str, ...]
    about: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """A command: the words that lead to it, its options, and what may follow: (word, what it is)."""

    path: tuple[str, ...]
    options: tuple[Option, ...]
    follow: tuple[tuple[str, str], ...]


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for a shell."""
    return {"bash": bash, "zsh": zsh, "fish": fish}[shell](list(commands(parser)))


def commands(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """Every command, the outermost first."""
    options, follow, below = [], [], []
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to list them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - likewise
            about = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001 - likewise
            follow += [(name, about.get(name, "")) for name in action.choices]
            below += [commands(inner, (*path, name)) for name, inner in action.choices.items()]
        elif action.option_strings:
            options.append(Option(tuple(action.option_strings), action.help or "", _words(action)))
        else:
            follow += [(word, action.help or "") for word in _words(action)]
    yield Command(path, tuple(options), tuple(dict.fromkeys(follow)))
    for inner in below:
        yield from inner


def bash(found: list[Command]) -> str:
    """For `source <(bfinfra completion bash)`."""
    return f"""\
_bfinfra() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} path="" word options="" follow=""
  COMPREPLY=()
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path $word" in
{_cases((f'" {c.path[0]}"' if len(c.path) == 1 else f'"{" ".join(c.path)}"', f'path="{" ".join(c.path)}"') for c in found if c.path)}
    esac
  done
  case "$prev" in
{_cases(("|".join(flags), _bash_words(words)) for flags, words in _valued(found))}
  esac
  case "$path" in
{_cases((f'"{" ".join(c.path)}"', f'options="{_flags(c)}" follow="{" ".join(word for word, _ in c.follow)}"') for c in found)}
  esac
  if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$cur"))
  elif [[ $follow == {FILES} ]]; then COMPREPLY=($(compgen -f -- "$cur"))
  else COMPREPLY=($(compgen -W "$follow" -- "$cur")); fi
}}
complete -o filenames -F _bfinfra bfinfra"""


def zsh(found: list[Command]) -> str:
    """For a file _bfinfra on $fpath, or `source <(bfinfra completion zsh)`."""
    return f"""\
#compdef bfinfra
_bfinfra() {{
  local trail="" word
  local -a options follow
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "$trail $word" in
{_cases((f'" {c.path[0]}"' if len(c.path) == 1 else f'"{" ".join(c.path)}"', f'trail="{" ".join(c.path)}"') for c in found if c.path)}
    esac
  done
  case "${{words[CURRENT-1]}}" in
{_cases(("|".join(flags), "_files; return" if FILES in words else f"compadd {' '.join(words)}; return") for flags, words in _valued(found))}
  esac
  case "$trail" in
{_cases((f'"{" ".join(c.path)}"', f"options=({_zsh_options(c)}) follow=({_zsh_follow(c)})") for c in found)}
  esac
  if [[ "${{words[CURRENT]}}" == -* ]]; then _describe option options
  elif [[ "$follow" == {FILES}* ]]; then _files
  else _describe command follow; fi
}}
if [[ "$funcstack[1]" == _bfinfra ]]; then _bfinfra "$@"; else compdef _bfinfra bfinfra; fi"""


def fish(found: list[Command]) -> str:
    """For ~/.config/fish/completions/bfinfra.fish."""
    lines = ["complete -c bfinfra -f"]
    for command in found:
        when = _fish_when(command, {word for word, _ in command.follow})
        for word, about in command.follow:
            lines.append(
                f"complete -c bfinfra -n {when} "
                + ("-F" if word == FILES else f"-a {word} -d {_quoted(about)}")
            )
        for option in command.options:
            names = " ".join(
                f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
            )
            takes = (
                ""
                if not option.words
                else " -r -F"
                if FILES in option.words
                else f" -x -a {_quoted(' '.join(option.words))}"
            )
            lines.append(
                f"complete -c bfinfra -n {_fish_when(command, set())} {names}{takes} -d "
                f"{_quoted(option.about)}"
            )
    return "\n".join(lines)


def _words(action: argparse.Action) -> tuple[str, ...]:
    if action.nargs == 0:
        return ()
    return tuple(map(str, action.choices)) if action.choices else (FILES,)


def _valued(found: list[Command]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Options that take a word, each once: no two commands give one option different words."""
    return list(
        dict.fromkeys(
            (option.flags, option.words) for command in found for option in command.options if option.words
        )
    )


def _cases(found: Iterator[tuple[str, str]]) -> str:
    return "\n".join(f"    {pattern}) {deed} ;;" for pattern, deed in found)


def _flags(command: Command) -> str:
    return " ".join(flag for option in command.options for flag in option.flags)


def _bash_words(words: tuple[str, ...]) -> str:
    inner = "-f" if FILES in words else f'-W "{" ".join(words)}"'
    return f'COMPREPLY=($(compgen {inner} -- "$cur")); return'


def _zsh_options(command: Command) -> str:
    return " ".join(_quoted(f"{flag}:{option.about}") for option in command.options for flag in option.flags)


def _zsh_follow(command: Command) -> str:
    return " ".join(_quoted(f"{word}:{about}" if word != FILES else FILES) for word, about in command.follow)


def _fish_when(command: Command, others: set[str]) -> str:
    if not command.path:
        return "__fish_use_subcommand"
    seen = " && ".join(f"__fish_seen_subcommand_from {word}" for word in command.path)
    words = " ".join(sorted(others - {FILES}))
    return _quoted(seen + (f" && not __fish_seen_subcommand_from {words}" if words else ""))


def _quoted(words: str) -> str:
    return "'" + words.replace("\\", "\\\\").replace("'", "’") + "'"
