"""The `quorate` command: every command exists, is imported on demand, and starts fast."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from quorate.cli.main import COMMANDS, main

HEAVY = ("asyncio", "aiohttp", "msgpack", "rich", "pyspark", "confluent_kafka", "uvloop")


def loaded_modules(*arguments: str) -> set[str]:
    """Return the modules that a command imports in a new interpreter."""
    program = (
        "import sys\n"
        "from quorate.cli.main import main\n"
        f"sys.argv[1:] = {list(arguments)!r}\n"
        "try: main(standalone_mode=True)\n"
        "except SystemExit: pass\n"
        "print('\\nMODULES', *sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.rpartition("MODULES")[2].split())


def test_help_imports_no_command_and_nothing_heavy() -> None:
    modules = loaded_modules("--help")
    assert not modules & set(HEAVY)
    ours = {name for name in modules if name.startswith("quorate.")}
    assert ours == {"quorate.cli", "quorate.cli.main", "quorate.cli.suggesting_group"}


def test_a_client_command_needs_no_event_loop() -> None:
    assert not loaded_modules("topics", "--help") & set(HEAVY)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_of_the_table_is_there(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0


def test_an_unknown_command_is_wrong_usage() -> None:
    assert CliRunner().invoke(main, ["nonsense"]).exit_code == 2


def test_hidden_commands_are_not_listed() -> None:
    listed = CliRunner().invoke(main, ["--help"]).output
    for name, lazy in COMMANDS.items():
        assert (f"\n  {name} " in listed) is not lazy.hidden


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "quorate", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("quorate, version ")
