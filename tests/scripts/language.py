"""The text of a script: steps, each with its comment, its command and its expected trace.

    # A comment says why the step comes next.
    elect 1
    ----
    node 1 is candidate in epoch 1

The first word of a command is its name. A word with "=" is an option, every other word is an
argument. Steps are separated by empty lines. A paragraph of comments may stand alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

SEPARATOR = "----"
NOTHING = "(nothing happens)"
"""The trace of a step that changes nothing."""


class ScriptError(Exception):
    """A line of a script that cannot be read or carried out. The message names the line."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command, or a paragraph of comments if `command` is empty."""

    line: int
    comment: tuple[str, ...]
    command: str = ""
    arguments: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    trace: tuple[str, ...] = ()

    def with_trace(self, trace: list[str]) -> Step:
        """Return this step with another trace."""
        return replace(self, trace=tuple(trace) or (NOTHING,))

    def numbers(self) -> list[int]:
        """Return the arguments as numbers. Raise ScriptError if one is not a number."""
        return [self.number(each) for each in self.arguments]

    def number(self, word: str) -> int:
        """Return a word as a number. Raise ScriptError if it is none."""
        if not word.isdecimal():
            raise self.error(f"{word} is not a number")
        return int(word)

    def option(self, name: str, default: int) -> int:
        """Return the option's value as a number, or `default` if the command does not give it."""
        return self.number(self.options[name]) if name in self.options else default

    def error(self, message: str) -> ScriptError:
        """Return an error that names this step."""
        return ScriptError(f"line {self.line}, {self.command}: {message}")


def parse(text: str) -> list[Step]:
    """Return the steps of a script. Raise ScriptError if a paragraph is not a step."""
    steps = []
    line = 1
    for paragraph in text.split("\n\n"):
        lines = paragraph.strip("\n").split("\n")
        if lines != [""]:
            steps.append(_step(line + paragraph.index(lines[0]), lines))
        line += paragraph.count("\n") + 2
    return steps


def _step(line: int, lines: list[str]) -> Step:
    comment = tuple(each for each in lines if each.startswith("#"))
    rest = lines[len(comment) :]
    if tuple(lines[: len(comment)]) != comment:
        raise ScriptError(f"line {line}: comments stand above the command")
    if not rest:
        return Step(line, comment)
    if len(rest) > 1 and rest[1] != SEPARATOR:
        raise ScriptError(f"line {line + len(comment) + 1}: {SEPARATOR} stands below a command")
    words = rest[0].split()
    return Step(
        line + len(comment),
        comment,
        words[0],
        tuple(each for each in words[1:] if "=" not in each),
        dict(each.split("=", 1) for each in words[1:] if "=" in each),
        tuple(rest[2:]),
    )


def render(steps: list[Step]) -> str:
    """Return the text of a script. `parse` reads the same steps from it."""
    return "\n\n".join(_text(each) for each in steps) + "\n"


def _text(step: Step) -> str:
    if not step.command:
        return "\n".join(step.comment)
    options = (f"{name}={value}" for name, value in step.options.items())
    command = " ".join((step.command, *step.arguments, *options))
    return "\n".join((*step.comment, command, SEPARATOR, *step.trace))
