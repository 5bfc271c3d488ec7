"""`quorate completion`: prints the script that completes commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from quorate.cli.client.errors import Refused
from quorate.cli.parsing.described_argument import DescribedArgument
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.safe_text import echo

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_QUORATE_COMPLETE"


@click.command(cls=StrictCommand)
@click.argument(
    "shell",
    type=click.Choice(SHELLS),
    cls=DescribedArgument,
    description="The shell that runs the script.",
)
def completion(shell: str) -> None:
    """Print the completion script for SHELL.

    Load it in the shell's start file, or write it where the shell looks for completions:

    \b
      bash: eval "$(quorate completion bash)" in ~/.bashrc
      zsh:  eval "$(quorate completion zsh)" in ~/.zshrc
      fish: quorate completion fish > ~/.config/fish/completions/quorate.fish
    """
    from quorate.cli.main import main

    found = get_completion_class(shell)
    if found is None:
        raise Refused(f"this version of click has no completion for {shell}")
    echo(found(main, {}, "quorate", VARIABLE).source())
