"""The file of nodes: its content, and its errors with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from quorate.cli.chaos.command import chaos
from quorate.cli.chaos.loading.node_file import load_nodes, parse_nodes
from quorate.cli.chaos.loading.reading import ScenarioError
from quorate.quorum.seams import Address

NODE = """[[nodes]]
id = 1
roles = ["broker", "controller"]
address = "127.0.0.1:9092"
kill = ["true", "kill"]
stop = ["true"]
pause = ["true"]
resume = ["true"]
start = ["true"]
"""


def test_a_node_with_its_commands() -> None:
    found = parse_nodes(NODE + "[expect]\nmax_unread_ms = 7\n", "nodes.toml")
    (node,) = found.nodes.values()
    assert (node.id, node.address) == (1, Address("127.0.0.1", 9092))
    assert node.commands["kill"] == ["true", "kill"]
    assert (found.with_role("broker"), found.with_role("controller")) == ([1], [1])
    assert (found.expect, found.command_timeout_ms) == ({"max_unread_ms": 7}, 60_000)


@pytest.mark.parametrize(
    ("old", "new", "line", "why"),
    [
        ("id = 1", "id = -1", 2, "id: value -1 must be a whole number from 0"),
        ("id = 1", "name = 1", 2, "'name' is an unknown key; the known keys are: id, roles"),
        ("[[nodes]]", "[[nodes]] x", 1, "not TOML"),
        ('["broker", "controller"]', '["leader"]', 3, "roles: value ['leader'] must be a list of"),
        ('["broker", "controller"]', '["broker"]', 1, "no node has the role controller"),
        ('["broker", "controller"]', '["controller"]', 1, "no node has the role broker"),
        ("127.0.0.1:9092", "127.0.0.1", 4, "address: value '127.0.0.1' must be HOST:PORT"),
        ("127.0.0.1:9092", "h:70000", 4, "address: value 'h:70000' must be HOST:PORT"),
        ('["true", "kill"]', '"true kill"', 5, "kill: value 'true kill' must be a program and its"),
        ('["true", "kill"]', "[]", 5, "kill: value [] must be a program and its arguments"),
        ('["true", "kill"]', '["no-such"]', 5, "kill: there is no program 'no-such'"),
        ('start = ["true"]', "", 1, "start is missing: Starts the node in the background."),
        ('start = ["true"]', 'start = ["true"]\n' + NODE, 11, "two nodes have the id 1"),
        ("[[nodes]]", "command_timeout_ms = 0\n[[nodes]]", 1, "command_timeout_ms: value 0 must"),
        ("[[nodes]]", "[expect]\nmax = 1\n[[nodes]]", 2, "'max' is an unknown key; the known"),
        ("[[nodes]]", "[expect]\nmax_unread_ms = 0\n[[nodes]]", 2, "max_unread_ms: value 0 must"),
    ],
)
def test_mistakes_have_a_line(old: str, new: str, line: int, why: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse_nodes(NODE.replace(old, new, 1), "nodes.toml")
    assert str(refused.value).startswith(f"nodes.toml:{line}: {why}")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read"):
        load_nodes(tmp_path)


def said(*arguments: str) -> tuple[int, str]:
    """Return the exit code and the output of `quorate chaos run` with a file of nodes."""
    ended = CliRunner().invoke(chaos, ("run", *arguments))
    return ended.exit_code, ended.output


def test_a_run_is_refused_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "nodes.toml"
    file.write_text(NODE)
    listed = ("--bootstrap-server", "127.0.0.1:9", "--nodes", str(file))
    code, output = said("slow-link", *listed)
    assert code == 1
    assert "config/chaos/slow-link.toml:" in output
    assert "step slow-link needs the fault sockets of `quorate up --faults`" in output
    needs = "step wait-refused needs the listeners of controllers of `quorate up --faults`"
    assert needs in said("quorum-loss", *listed)[1]
    file.write_text(NODE.replace("id = 1", "id = x"))
    assert f"{file}:2: not TOML" in said("leader-kill", *listed)[1]
    mine = tmp_path / "mine.toml"
    mine.write_text(
        'title = "x"\n[[variants]]\nname = "v"\n[[variants.steps]]\ndo = "kill"\nnode = 7\n'
    )
    file.write_text(NODE)
    assert f"{mine}:4: step kill: node: value 7 must be one of 1" in said(str(mine), *listed)[1]
    assert (
        "--bootstrap-server: value 'x' must be"
        in said("leader-kill", "--bootstrap-server", "x", "--nodes", str(file))[1]
    )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--bootstrap-server", "h:1"), "--bootstrap-server and --nodes need each other"),
        (("--nodes", "FILE"), "--bootstrap-server and --nodes need each other"),
        (
            ("--nodes", "FILE", "--bootstrap-server", "h:1", "--dir", "."),
            "--dir cannot be given with --bootstrap-server",
        ),
        (
            ("--nodes", "FILE", "--bootstrap-server", "h:1", "--override", "a=b"),
            "--override, --secure and --keep cannot be given with",
        ),
    ],
)
def test_options_that_do_not_fit(arguments: tuple[str, ...], why: str, tmp_path: Path) -> None:
    file = tmp_path / "nodes.toml"
    file.write_text(NODE)
    named = [str(file) if each == "FILE" else each for each in arguments]
    code, output = said("leader-kill", *named)
    assert (code, " ".join(why.split()) in " ".join(output.split())) == (2, True), output
