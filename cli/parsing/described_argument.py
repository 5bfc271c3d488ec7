"""Positional arguments with a description, which --help, the man pages and the reference show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class DescribedArgument(click.Argument):
    """A positional argument with a description. Before version 8.5, click does not show it in
    --help."""

    def __init__(self, param_decls: Sequence[str], *, description: str, **attributes: Any) -> None:
        """`description` says which values the argument has."""
        super().__init__(param_decls, **attributes)
        self.help = description
