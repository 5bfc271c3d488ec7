"""AclCommand, ConfigCommand for users, and Quorate's commands, against both secured programs.

Each tool runs the same commands at each server. All four print the same lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.test_sasl import PLAIN
from tests.golden.nodes import KAFKA, QUORATE, Program
from tests.kafka.secured_node import ADMIN, PASSWORD, SecuredNode
from tests.kafka.tools import Ended, missing

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
USER = "alice"
FILE = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
    'sasl.jaas.config={module} username="{user}" password="{password}";\n'
    "default.api.timeout.ms=10000\nrequest.timeout.ms=9000\n"
)
PREFIXED = "--resource-pattern-type prefixed"
ACLS = (
    "--add --allow-principal User:a --producer --topic t1 --transactional-id x --idempotent",
    f"--add --allow-principal User:b --consumer --topic t --group g {PREFIXED}",
    "--add --deny-principal User:c --deny-host 10.0.0.1 --cluster",
    "--list",
    "--list --topic t1 --resource-pattern-type match",
    "--list --principal User:c",
    f"--remove --force --topic t {PREFIXED}",
    "--remove --force --cluster",
    "--list",
    "--remove --force --topic t1",
    "--remove --force --cluster",
    "--remove --force --transactional-id x",
    f"--remove --force --group g {PREFIXED}",
    "--list",
)
OF_CAROL = "--entity-type users --entity-name carol"
USERS = (
    f"--alter {OF_CAROL} --add-config SCRAM-SHA-512=[iterations=8192,password=pencil]",
    f"--alter {OF_CAROL} --add-config SCRAM-SHA-256=[password=pencil]",
    f"--alter {OF_CAROL} --add-config consumer_byte_rate=1000",
    f"--describe {OF_CAROL}",
    "--describe --entity-type users",
    f"--alter {OF_CAROL} --delete-config SCRAM-SHA-512",
    f"--describe {OF_CAROL}",
    f"--alter {OF_CAROL} --delete-config SCRAM-SHA-256",
    f"--alter {OF_CAROL} --delete-config consumer_byte_rate",
    f"--describe {OF_CAROL}",
    "--describe --entity-type users --entity-name nobody",
)
REFUSED = (
    ("acls", "--list"),
    ("acls", "--add --allow-principal User:a --topic t --operation Read"),
    ("configs", f"--describe {OF_CAROL}"),
    ("configs", f"--alter {OF_CAROL} --add-config SCRAM-SHA-512=[password=pencil]"),
)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, SecuredNode]]:
    root: Path = tmp_path_factory.mktemp("secured-tools")
    with ExitStack() as stack:
        nodes = {}
        for program in (KAFKA, QUORATE):
            node = SecuredNode(root / program.name, program, [USER])
            stack.enter_context(node.running())
            nodes[program.name] = node
        yield nodes


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root: Path = tmp_path_factory.mktemp("clients")
    found = {}
    for user in (ADMIN, USER):
        found[user] = root / f"{user}.properties"
        found[user].write_text(FILE.format(module=PLAIN, user=user, password=PASSWORD))
    return found


def run(tool: Program, name: str, words: str, node: SecuredNode, file: Path) -> Ended:
    server = ("--bootstrap-server", f"127.0.0.1:{node.sasl_port}", "--command-config", str(file))
    return tool.run(name, *server, *words.split())


def sorted_lines(ended: Ended) -> list[str]:
    """Kafka's tools print resources, ACLs and configs in the order of their hashes."""
    assert ended.code == 0, ended.errors
    return sorted(with_sorted_configs(line.strip()) for line in ended.lines if line.strip())


def with_sorted_configs(line: str) -> str:
    text, are, configs = line.partition(" are ")
    return text + are + ", ".join(sorted(configs.split(", ")))


@pytest.mark.parametrize(("name", "commands"), [("acls", ACLS), ("configs", USERS)])
def test_both_tools_print_the_same_at_both_servers(
    servers: dict[str, SecuredNode], files: dict[str, Path], name: str, commands: tuple[str, ...]
) -> None:
    found = {}
    for server, node in servers.items():
        for tool in (KAFKA, QUORATE):
            found[f"{tool.name} at {server}"] = {
                f"{number} {words}": sorted_lines(run(tool, name, words, node, files[ADMIN]))
                for number, words in enumerate(commands)
            }
    expected = found.pop("kafka at kafka")
    for who, lines in found.items():
        assert lines == expected, who
    assert sum(map(len, expected.values())) > len(commands)


@pytest.mark.parametrize(("name", "words"), REFUSED)
def test_a_user_without_permissions_is_refused(
    servers: dict[str, SecuredNode], files: dict[str, Path], name: str, words: str
) -> None:
    for node in servers.values():
        for tool in (KAFKA, QUORATE):
            ended = run(tool, name, words, node, files[USER])
            assert ended.code, (tool.name, node.program.name)
            assert "authoriz" in (ended.errors + "".join(ended.lines)).lower(), ended
