"""Man pages: the descriptions of commands in roff, the language of man. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from quorate.cli.manual.description import Described, Paragraph

CODE = re.compile(r"`([^`\n]+)`")


def page_name(path: str) -> str:
    """Return the name of the page of a command: quorate-storage-format for its three words."""
    return path.replace(" ", "-")


def man_page(described: Described, others: Sequence[str], version: str) -> str:
    """Return the page of a command. `others` are the paths of the commands to refer to."""
    return "\n".join(_lines(described, others, version)) + "\n"


def _lines(described: Described, others: Sequence[str], version: str) -> Iterator[str]:
    name = page_name(described.path)
    yield f'.TH "{escaped(name.upper())}" 1 "" "quorate {escaped(version)}" "Quorate"'
    yield ".SH NAME"
    yield f"{escaped(name)} \\- {text(described.summary)}"
    yield ".SH SYNOPSIS"
    yield rf"\fB{escaped(described.path)}\fR{escaped(described.usage[len(described.path) :])}"
    if described.paragraphs:
        yield ".SH DESCRIPTION"
        for paragraph in described.paragraphs:
            yield from _paragraph(paragraph)
    yield from _terms("ARGUMENTS", described.arguments)
    yield from _terms("OPTIONS", described.options)
    yield from _terms("COMMANDS", described.commands)
    if described.examples:
        yield ".SH EXAMPLES"
        yield from _verbatim(described.examples)
    if others:
        yield ".SH SEE ALSO"
        yield ",\n".join(rf"\fB{escaped(page_name(path))}\fR(1)" for path in others)


def _paragraph(paragraph: Paragraph) -> Iterator[str]:
    yield ".PP"
    if paragraph.verbatim:
        yield from _verbatim(paragraph.text.rstrip().split("\n"))
    else:
        yield text(" ".join(paragraph.text.split()))


def _verbatim(lines: Sequence[str]) -> Iterator[str]:
    yield ".nf"
    yield from (escaped(line) for line in lines)
    yield ".fi"


def _terms(title: str, terms: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield a section with a term and its explanation for each pair, or nothing without pairs."""
    if terms:
        yield f".SH {title}"
    for term, explanation in terms:
        yield ".TP"
        yield rf"\fB{escaped(term)}\fR"
        yield text(" ".join(explanation.split())) or r"\&"


def text(plain: str) -> str:
    """Return a text for roff, with the words in backquotes in bold."""
    return CODE.sub(r"\\fB\1\\fR", escaped(plain))


def escaped(plain: str) -> str:
    """Return text that roff prints as it is. A hyphen stays one, so that options can be copied, and
    no line starts a request."""
    shown = plain.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{shown}" if shown.startswith((".", "'")) else shown
