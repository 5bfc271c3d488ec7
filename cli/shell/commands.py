"""The commands of the metadata shell: their arguments and their output lines.

Nothing is printed here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from quorate.cli.shell import paths
from quorate.cli.shell.columns import in_columns
from quorate.cli.shell.nodes import Directory, Node, tree_lines

HELP_COLUMN = 25
ALL_ENTRIES = 2**31 - 1
"""The number that stands for no bound."""


@dataclass(slots=True)
class Shell:
    """The state of a shell.

    `width` is the number of columns of the terminal, or None without one. `missed` becomes True if
    a path did not exist or had the wrong type, and stays True. `misses` are the lines about such
    paths of the last command."""

    root: Directory
    width: int | None = None
    working_directory: paths.Path = ()
    history: list[str] = field(default_factory=list)
    missed: bool = False
    misses: list[str] = field(default_factory=list)

    def find(self, target: str) -> list[paths.Found]:
        """Return the nodes that match a path or glob, in the order of their names.

        The list is empty if there is none."""
        return list(paths.find(self.root, paths.resolved(target, self.working_directory)))

    def miss(self, line: str) -> str:
        """Record that a target is missing, and return the line that reports it."""
        self.missed = True
        self.misses.append(line)
        return line


class ShellError(Exception):
    """A command that cannot be parsed. The message is Kafka's."""


class ExitShell(Exception):
    """The `exit` command."""


@dataclass(frozen=True, slots=True)
class Argument:
    """The positional arguments of a command: their text in usage lines, help and number."""

    shown: str
    help: str
    least: int = 0
    most: int = ALL_ENTRIES


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `shell_only` means that only the interactive shell accepts it.

    `run` gets the shell and the arguments. It returns the output lines, and may do its work only
    while the caller iterates over them. It may raise ShellError and ExitShell."""

    description: str
    run: Callable[[Shell, Sequence[str]], Iterable[str]]
    argument: Argument | None = None
    shell_only: bool = False
    in_help: tuple[str, ...] = ()
    """The lines of the description in `help`, if there are several."""


def _cat(shell: Shell, targets: Sequence[str]) -> Iterator[str]:
    for target in targets:
        found = shell.find(target)
        if not found:
            yield shell.miss(f"cat: {target}: No such file or directory.")
        for each in found:
            if isinstance(each.node, str):
                yield each.node
            else:
                yield shell.miss(f"cat: {target}: Is a directory")


def _cd(shell: Shell, targets: Sequence[str]) -> Iterator[str]:
    target = targets[0] if targets else "/"
    found = shell.find(target)
    if not found:
        yield shell.miss(f"cd: {target}: no such directory.")
    for each in found:
        if isinstance(each.node, str):
            yield shell.miss(f"cd: {target}: not a directory.")
        else:
            shell.working_directory = each.path


def _find(shell: Shell, targets: Sequence[str]) -> Iterator[str]:
    for target in _or_here(targets):
        found = shell.find(target)
        if not found:
            yield shell.miss(f"find: {target}: no such file or directory.")
        for each in found:
            # Kafka's shell prints the glob itself in place of the path, once for all matches. Here
            # each match is printed with its path.
            globbed = any(map(paths.glob_pattern, target.split("/")))
            yield from below(paths.absolute(each.path) if globbed else target, each.node)


def below(path: str, node: Node) -> Iterator[str]:
    """Yield the paths of a node and of everything below it."""
    yield path
    if not isinstance(node, str):
        for name in sorted(node):
            yield from below(f"{path}{'' if path == '/' else '/'}{name}", node[name]())


def _help(shell: Shell, _: Sequence[str]) -> Iterator[str]:
    yield from ("Welcome to the Apache Kafka metadata shell.", "")
    choices = "{" + ",".join(COMMANDS) + "}"
    yield from (f"usage:  {choices} ...", "", "positional arguments:", f"  {choices}")
    for name, command in COMMANDS.items():
        first, *rest = command.in_help or [command.description]
        yield f"    {name:{HELP_COLUMN - 4}}{first}"
        yield from (" " * HELP_COLUMN + line for line in rest)


def _history(shell: Shell, wanted: Sequence[str]) -> Iterator[str]:
    count = max(0, _integer("numEntriesToShow", wanted[0])) if wanted else ALL_ENTRIES
    entries = list(enumerate(shell.history))
    for number, line in entries[max(0, len(entries) - count) :]:
        yield f"{number:5}  {line}"


def _integer(name: str, text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ShellError(
            f"argument {name}: could not convert '{text}' to Integer (For input string: \"{text}\")"
        )
    return int(text)


def _ls(shell: Shell, targets: Sequence[str]) -> Iterator[str]:
    files: list[str] = []
    directories: list[tuple[str, list[str]]] = []
    for target in _or_here(targets):
        found = shell.find(target)
        if not found:
            yield shell.miss(f"ls: {target}: no such file or directory.")
        for each in found:
            if isinstance(each.node, str):
                files.append(each.name)
            else:
                directories.append((each.name, sorted(each.node)))
    yield from in_columns(files, shell.width)
    named = bool(files) or len(directories) > 1
    for number, (name, children) in enumerate(directories):
        if not children:
            continue
        if named and (files or number):
            yield ""
        if named:
            yield f"{name}:"
        yield from in_columns(children, shell.width)


def _man(shell: Shell, names: Sequence[str]) -> Iterator[str]:
    name = names[0]
    command = COMMANDS.get(name)
    if command is None:
        yield f"man: unknown command {name}. Type help to get a list of commands."
        return
    yield from (f"{name}: {command.description}", "")
    yield from usage_lines(name, command)


def usage_lines(name: str, command: Command, *, as_option: bool = False) -> Iterator[str]:
    """Yield the usage lines of a command. `as_option` selects the form that `--help` prints."""
    argument = command.argument
    shown = f" {argument.shown}" if argument else ""
    yield f"usage:  {name} [-h]{shown}" if as_option else f"usage: {name}{shown}"
    if argument:
        listed = argument.shown.strip("[").split()[0].strip("]")
        yield from ("", "positional arguments:", _listed(listed, argument.help))
    if as_option:
        shown_help = _listed("-h, --help", "show this help message and exit")
        yield from ("", "optional arguments:", shown_help)


def _listed(name: str, text: str) -> str:
    return f"  {name:{HELP_COLUMN - 2}}{text}"


def _pwd(shell: Shell, _: Sequence[str]) -> Iterator[str]:
    yield paths.absolute(shell.working_directory)


def _tree(shell: Shell, targets: Sequence[str]) -> Iterator[str]:
    for target in targets:
        found = shell.find(target)
        if not found:
            yield shell.miss(f"tree: {target}: No such file or directory.")
        for each in found:
            yield from tree_lines(each.node)


def _or_here(targets: Sequence[str]) -> list[str]:
    return [each for each in targets if each] or ["."]


def _exit(shell: Shell, _: Sequence[str]) -> Iterable[str]:
    raise ExitShell


COMMANDS = {
    "cat": Command(
        "Show the contents of metadata files.",
        _cat,
        Argument("targets [targets ...]", "The metadata files to display.", least=1),
    ),
    "cd": Command(
        "Set the current working directory.",
        _cd,
        Argument("[target]", "The directory to change to.", most=1),
        shell_only=True,
    ),
    "exit": Command("Exit the metadata shell.", _exit, shell_only=True),
    "find": Command(
        "Search for nodes in the directory hierarchy.",
        _find,
        Argument("[paths [paths ...]]", "The paths to start at."),
    ),
    "help": Command("Display this help message.", _help, shell_only=True),
    "history": Command(
        "Print command history.",
        _history,
        Argument("[numEntriesToShow]", "The number of entries to show.", most=1),
        shell_only=True,
    ),
    "ls": Command(
        "List metadata nodes.",
        _ls,
        Argument("[targets [targets ...]]", "The metadata node paths to list."),
    ),
    "man": Command(
        "Show the help text for a specific command.",
        _man,
        Argument("cmd", "The command to get help text for.", least=1, most=1),
        shell_only=True,
    ),
    "pwd": Command("Print the current working directory.", _pwd, shell_only=True),
    "tree": Command(
        "Show the contents of metadata nodes in a tree structure.",
        _tree,
        Argument("targets [targets ...]", "The metadata nodes to display.", least=1),
        in_help=("Show the contents  of  metadata  nodes  in  a tree", "structure."),
    ),
}
