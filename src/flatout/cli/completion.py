"""`flatout completion SHELL`: completes commands, options, levers, causes, views and cases in a shell.

The script that it prints asks `flatout completion words …` for what can stand at the cursor; where nothing is known,
the shell completes files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flatout.cli import COMMANDS
from flatout.model.errors import InvalidOption

if TYPE_CHECKING:
    import typer.core

SCRIPTS = {
    "bash": """\
_flatout() {
    local found
    found=$(flatout completion words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    mapfile -t COMPREPLY < <(compgen -W "$found" -- "${COMP_WORDS[COMP_CWORD]}")
}
complete -o default -F _flatout flatout
""",
    "zsh": """\
#compdef flatout
_flatout() {
    local -a found
    found=(${(f)"$(flatout completion words "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( ${#found} )); then compadd -- $found; else _files; fi
}
compdef _flatout flatout
""",
    "fish": """\
complete -c flatout -a '(flatout completion words (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
""",
}
INSTALL = {
    "bash": 'eval "$(flatout completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(flatout completion zsh)"   in ~/.zshrc, after compinit',
    "fish": "flatout completion fish > ~/.config/fish/completions/flatout.fish",
}


def register(app: typer.Typer) -> None:
    @app.command("completion", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
    def _command(
        context: typer.Context,
        shell: Annotated[str, typer.Argument(help=f"{', '.join(SCRIPTS)}: put the text where the shell reads it.")],
    ) -> None:
        """Print what completes commands, options, levers, causes, views and cases in your shell."""
        if shell == "words":
            typer.echo("\n".join(candidates(context.args or [""])))
        elif shell in SCRIPTS:
            typer.echo(f"# {INSTALL[shell]}\n{SCRIPTS[shell]}", nl=False)
        else:
            raise InvalidOption(f"The shells are {', '.join(SCRIPTS)}, not {shell!r}.")


def candidates(words: Sequence[str]) -> list[str]:
    """What may stand for the last of these words; empty for files."""
    *before, last = words
    if not before:
        found: Iterable[str] = COMMANDS
    else:
        command, group = _command(before)
        previous = before[-1]
        if previous.startswith("--") and (names := _values(previous, before[0])) is not None:
            found = names
        elif last.startswith("-") or (group and len(before) == 1):
            found = _options(command) if last.startswith("-") else group
        else:
            found = _arguments(before[0])
    return sorted({name for name in found if name.startswith(last)})


def _command(words: Sequence[str]) -> tuple[typer.core.TyperCommand | None, list[str]]:
    """The command that these words name, and its subcommands."""
    if words[0] not in COMMANDS:
        return None, []
    from flatout.cli import make_app
    from flatout.cli._form import formed

    command = formed(make_app([words[0]])).commands[words[0]]
    group = getattr(command, "commands", {})
    if len(words) > 1 and words[1] in group:
        return group[words[1]], list(group)
    return command, list(group)  # type: ignore[return-value]  # a group has params too


def _options(command: typer.core.TyperCommand | None) -> list[str]:
    return [name for one in (command.params if command is not None else ()) for name in one.opts if name[:2] == "--"]


def _values(option: str, command: str) -> Iterable[str] | None:
    """The names that an option takes, where they are known."""
    if option in ("--lever", "--with") or (option == "--without" and command == "tune"):
        from flatout.cures import levers

        return [*levers(), *(["@tuned"] if option == "--with" else [])]
    if option in ("--route", "--without"):
        from flatout.routes import catalogue

        return list(catalogue())
    if option == "--view":
        from flatout.report.terminal import VIEWS

        return list(VIEWS)
    return ("precision", "semantic") if option == "--allow" else None


def _arguments(command: str) -> Iterable[str]:
    if command == "explain":
        from flatout import causes, cures, routes
        from flatout.environment import checks

        return [name for room in (causes, cures, routes, checks) for name in room.catalogue()]
    if command in ("show", "report", "compare"):
        from flatout import store

        cases = Path(store.HOME) / "cases"
        return sorted(os.listdir(cases)) if cases.is_dir() else ()
    return tuple(SCRIPTS) if command == "completion" else ()
