"""The parser of the metadata shell's lines: the command, its arguments, and their completion.

Errors have the words of Kafka's parser."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quorate.cli.shell.commands import COMMANDS, Argument, Shell, ShellError, usage_lines


def run_line(shell: Shell, words: Sequence[str], *, interactive: bool = True) -> list[str]:
    """Run the command in `words` and return its lines.

    Unless `interactive`, the commands of the interactive shell do not exist. Raise ShellError for a
    wrong command line, ExitShell for `exit`."""
    shell.misses.clear()
    while words and not words[-1]:
        words = words[:-1]
    while words and not words[0]:
        words = words[1:]
    if not words:
        return []
    name = command_named(
        words[0], [n for n, c in COMMANDS.items() if interactive or not c.shell_only]
    )
    command = COMMANDS[name]
    arguments = parse_arguments(command.argument or Argument("", "", most=0), words[1:])
    if arguments is None:
        return list(usage_lines(name, command, as_option=True))
    return list(command.run(shell, arguments))


def command_named(word: str, names: Sequence[str]) -> str:
    """Return the command that a word names. Raise ShellError if there is none."""
    if word in names:
        return word
    meant = [name for name in names if name.startswith(word)]
    if len(meant) == 1:
        raise ShellError(f"invalid choice: '{word}': did you mean '{meant[0]}'?")
    if meant:
        raise ShellError(f"ambiguous command: {word} could match {', '.join(meant)}")
    choices = ", ".join(f"'{name}'" for name in names)
    raise ShellError(f"invalid choice: '{word}' (choose from {choices})")


def parse_arguments(argument: Argument, words: Sequence[str]) -> list[str] | None:
    """Return the arguments, or None if they ask for help. After `--` no word is an option.

    Raise ShellError for an unknown option or a wrong number of arguments."""
    arguments: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            arguments += rest
        elif word in ("-h", "--help"):
            return None
        elif re.match(r"-[^0-9]", word):
            raise ShellError(f"unrecognized arguments: '{word}'")
        else:
            arguments.append(word)
    if len(arguments) < argument.least:
        raise ShellError("too few arguments")
    if len(arguments) > argument.most:
        raise ShellError(f"unrecognized arguments: '{' '.join(arguments[argument.most :])}'")
    return arguments


def completions(shell: Shell, words: Sequence[str], prefix: str) -> list[str]:
    """Return the completions of `prefix` after `words`: commands or paths.

    A name that could control the terminal is left out, because the readline module prints
    completions as they are."""
    if not words or words[0] == "man":
        return [f"{name} " for name in COMMANDS if name.startswith(prefix)]
    command = COMMANDS.get(words[0])
    if command is None or command.argument is None or words[0] == "history":
        return []
    head, _, last = prefix.rpartition("/")
    start = f"{head}/" if "/" in prefix else ""
    return [
        f"{start}{name}{' ' if isinstance(each.node[name](), str) else '/'}"
        for each in shell.find(start or ".")
        if not isinstance(each.node, str)
        for name in sorted(each.node)
        if name.startswith(last) and name.isprintable()
    ]
