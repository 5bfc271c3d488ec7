"""The `quorate` command: every command exists, is imported on demand, and starts fast."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from quorate.cli.completion import SHELLS
from quorate.cli.main import COMMANDS, main
from quorate.cli.parsing.examples import EXAMPLES

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
    assert ours == {
        "quorate.cli",
        "quorate.cli.main",
        "quorate.cli.parsing",
        "quorate.cli.parsing.strict_command",
        "quorate.cli.parsing.suggesting_group",
    }


def test_a_client_command_needs_no_event_loop() -> None:
    assert not loaded_modules("topics", "--help") & set(HEAVY)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_of_the_table_is_there(name: str) -> None:
    command = main.get_command(click.Context(main, **main.context_settings), name)
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


def leaves(
    command: click.Command, context: click.Context, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield each command that is no group, with its path and its context."""
    if not isinstance(command, click.Group):
        yield " ".join(path), command, context
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        inside = click.Context(inner, parent=context, info_name=name)
        yield from leaves(inner, inside, (*path, name))


LEAVES = list(leaves(main, click.Context(main, info_name="quorate", **main.context_settings)))


@pytest.mark.parametrize("path", [path for path, _, _ in LEAVES])
def test_the_help_of_every_command_has_examples_that_parse(path: str) -> None:
    (found,) = (each for each in LEAVES if each[0] == path)
    _, command, context = found
    assert EXAMPLES[path]
    for example in EXAMPLES[path]:
        arguments = shlex.split(example.partition(" > ")[0])
        command.make_parser(context).parse_args(arguments)
        assert f"quorate {path} {example}".rstrip() in command.get_help(context)


def test_every_example_has_its_command() -> None:
    assert set(EXAMPLES) == {path for path, _, _ in LEAVES}


def groups(command: click.Group, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the path of each group below `command`."""
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if isinstance(inner, click.Group):
            yield " ".join((*path, name))
            yield from groups(inner, (*path, name))


@pytest.mark.parametrize("path", sorted(groups(main)))
def test_the_help_of_a_group_has_examples_and_whole_sentences(path: str) -> None:
    result = CliRunner().invoke(main, [*path.split(), "--help"])
    assert f"\n    quorate {path} " in result.output
    assert "..." not in result.output.partition("\nCommands:")[2].replace("HOST:PORT,...", "")


SESSION = """
eval "$(quorate completion bash)"
complete -p quorate
for words in 'quorate reass' 'quorate cluster un' 'quorate chaos run leader-k' 'quorate up --det'
do
    COMP_WORDS=($words) COMPREPLY=()
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _quorate_completion quorate
    echo "$words: ${COMPREPLY[*]}"
done
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_and_names_of_scenarios() -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", SESSION],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path},
    )
    assert done.stderr == ""
    registered, *completed = done.stdout.splitlines()
    assert "-F _quorate_completion" in registered
    assert completed == [
        "quorate reass: reassign-partitions",
        "quorate cluster un: unregister",
        "quorate chaos run leader-k: leader-kill",
        "quorate up --det: --detach",
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_of_each_shell(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert "_QUORATE_COMPLETE" in result.output


def test_commands_are_completed_without_an_import() -> None:
    program = (
        "import os, sys\n"
        "os.environ.update(COMP_WORDS='quorate re', COMP_CWORD='1',"
        " _QUORATE_COMPLETE='bash_complete')\n"
        "from quorate.cli.main import main\n"
        "try: main(prog_name='quorate')\n"
        "except SystemExit: pass\n"
        "assert 'quorate.cli.reassign.command' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["plain,reassign-partitions", "plain,replica-verification"]


@pytest.mark.parametrize("command", ["--help", "storage random-uuid", "completion bash"])
def test_a_full_disk_behind_standard_output_is_one_line(command: str) -> None:
    program = "from quorate.cli.main import main; main()"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program, *command.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "Error: standard output: No space left on device\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_error(closed: str) -> None:
    program = "from quorate.cli.main import main; main()"
    line = shlex.join([sys.executable, "-c", program, "storage", "random-uuid"])
    done = subprocess.run(["sh", "-c", f"{line} {closed}"], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_directory_that_may_not_be_read_is_one_line() -> None:
    """`Path.exists` raises such errors, and others than a missing file."""
    result = CliRunner().invoke(main, ["down", "--dir", "d" * 5_000])
    assert result.exit_code == 1
    assert result.stderr.endswith("/cluster.json: File name too long\n")


@pytest.mark.parametrize("encoding", ["utf-8", "iso8859-5"])
def test_a_name_that_standard_output_cannot_encode_is_printed(
    tmp_path: Path, encoding: str
) -> None:
    name = os.fsencode(tmp_path) + b"/\xff\xc3\xbc"
    program = "from quorate.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "man-pages", name],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    shown = rb"\udcff\xfc" if encoding != "utf-8" else b"\\udcff\xc3\xbc"
    assert done.stdout.rstrip().endswith(shown)
