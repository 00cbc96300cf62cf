"""Completion scripts for bash, zsh and fish, made from the parser itself, so that they always match it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from bfinfra import kinds as registry
from bfinfra.formats import fish as fish_words
from bfinfra.formats import zsh as zsh_words
from bfinfra.model.records import dataclass

FILES = "@files"
ADDRESSES = "@addresses"
ASK = "bfinfra completion bash --addresses"
"""Prints the addresses of the site that the words name."""
_FISH = {FILES: "-F", ADDRESSES: f"-a '({ASK} (commandline -opc)[2..] 2> /dev/null)'"}


@dataclass(frozen=True)
class Option:
    """An option: its spellings, its help, and the words it takes (FILES for any text, empty for a switch)."""

    flags: tuple[str, ...]
    about: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """A command: its words, its options, and what may follow: (word, help)."""

    path: tuple[str, ...]
    options: tuple[Option, ...]
    follow: tuple[tuple[str, str], ...]


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for a shell."""
    return {"bash": bash, "zsh": zsh, "fish": fish}[shell](list(commands(parser)))


def commands(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """All commands, the outermost first."""
    options, follow, below = [], [], []
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to list them
        if action.help == argparse.SUPPRESS:
            continue
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
    """The script for `source <(bfinfra completion bash)`."""
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
  if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$cur")); return; fi
  if [[ " $follow " == *" {FILES} "* ]]; then COMPREPLY+=($(compgen -f -- "$cur")); fi
  if [[ " $follow " == *" {ADDRESSES} "* ]]; then _bfinfra_addresses; fi
  if [[ $follow != *@* ]]; then COMPREPLY=($(compgen -W "$follow" -- "$cur")); fi
}}
_bfinfra_addresses() {{  # not by compgen -W, which runs what stands in $(…)
  local address
  while IFS= read -r address; do
    if [[ $address == "$cur"* ]]; then COMPREPLY+=("$address"); fi
  done < <({ASK} "${{COMP_WORDS[@]:1:COMP_CWORD-1}}" 2> /dev/null)
}}
complete -o filenames -F _bfinfra bfinfra"""


def zsh(found: list[Command]) -> str:
    """The script for a file _bfinfra on $fpath, or `source <(bfinfra completion zsh)`."""
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
{_cases(("|".join(flags), _zsh_words(words)) for flags, words in _valued(found))}
  esac
  case "$trail" in
{_cases((f'"{" ".join(c.path)}"', f"options=({_zsh_options(c)}) follow=({_zsh_follow(c)})") for c in found)}
  esac
  if [[ "${{words[CURRENT]}}" == -* ]]; then _describe option options
  elif [[ "$follow" == *@* ]]; then
    if [[ " $follow " == *" {FILES} "* ]]; then _files; fi
    if [[ " $follow " == *" {ADDRESSES} "* ]]; then _bfinfra_addresses; fi
  else _describe command follow; fi
}}
_bfinfra_addresses() {{ compadd -- ${{(f)"$({ASK} "${{(@)words[2,CURRENT-1]}}" 2> /dev/null)"}} }}
if [[ "$funcstack[1]" == _bfinfra ]]; then _bfinfra "$@"; else compdef _bfinfra bfinfra; fi"""


def fish(found: list[Command]) -> str:
    """The script for ~/.config/fish/completions/bfinfra.fish."""
    lines = ["complete -c bfinfra -f"]
    for command in found:
        when = _fish_when(command, {word for word, _ in command.follow})
        for word, about in command.follow:
            takes = _FISH.get(word) or f"-a {fish_words.quoted(word)} -d {fish_words.quoted(about)}"
            lines.append(f"complete -c bfinfra -n {when} {takes}")
        here = f"complete -c bfinfra -n {_fish_when(command, set())}"
        lines += [f"{here} {_fish_option(option)}" for option in command.options]
    return "\n".join(lines)


def _fish_option(option: Option) -> str:
    names = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
    takes = ""
    if option.words:
        known = _FISH.get(option.words[0])
        takes = (
            f" {'-r' if known == _FISH[FILES] else '-x'} {known}"
            if known
            else f" -x -a {fish_words.quoted(' '.join(option.words))}"
        )
    return f"{names}{takes} -d {fish_words.quoted(option.about)}"


def _words(action: argparse.Action) -> tuple[str, ...]:
    if action.nargs == 0:
        return ()
    if action.choices:
        return tuple(map(str, action.choices))
    metavar = str(action.metavar)
    if metavar.startswith("KIND"):
        return tuple(registry.names())
    return (ADDRESSES,) if metavar.startswith("ADDRESS") else (FILES,)


def _valued(found: list[Command]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Options that take a word, each once. No two commands give an option different words."""
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
    if words[0] == ADDRESSES:
        return "_bfinfra_addresses; return"
    inner = "-f" if words[0] == FILES else f'-W "{" ".join(words)}"'
    return f'COMPREPLY=($(compgen {inner} -- "$cur")); return'


def _zsh_words(words: tuple[str, ...]) -> str:
    known = {FILES: "_files", ADDRESSES: "_bfinfra_addresses"}
    return (known.get(words[0]) or f"compadd {' '.join(words)}") + "; return"


def _zsh_options(command: Command) -> str:
    return " ".join(
        zsh_words.described(flag, option.about) for option in command.options for flag in option.flags
    )


def _zsh_follow(command: Command) -> str:
    return " ".join(
        word if word in (FILES, ADDRESSES) else zsh_words.described(word, about)
        for word, about in command.follow
    )


def _fish_when(command: Command, others: set[str]) -> str:
    if not command.path:
        return "__fish_use_subcommand"
    seen = " && ".join(f"__fish_seen_subcommand_from {word}" for word in command.path)
    words = " ".join(sorted(others - {FILES, ADDRESSES}))
    return fish_words.quoted(seen + (f" && not __fish_seen_subcommand_from {words}" if words else ""))
