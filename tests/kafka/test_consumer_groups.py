"""kafka-consumer-groups on our cluster says what our consumer-groups says, line by line, and a real
console consumer goes on where its group stopped."""

from __future__ import annotations

import pytest

from tests.clients.cluster import ProcessCluster, run_quorate
from tests.kafka.tools import kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

TOPIC, GROUP = "grouped", "java-group"


@pytest.fixture(scope="module")
def consumed(cluster: ProcessCluster) -> list[str]:
    """A topic of ten records, of which a group got six and then four."""
    server = ("--bootstrap-server", cluster.bootstrap)
    create = ("--create", "--topic", TOPIC, "--partitions", "1")
    assert run_quorate("topics", *server, *create).returncode == 0
    sent = kafka(
        "console-producer", *server, "--topic", TOPIC, stdin="".join(f"{i}\n" for i in range(10))
    )
    assert sent.code == 0, sent.errors
    lines = []
    for count in ("6", "4"):
        options = ("--topic", TOPIC, "--group", GROUP, "--from-beginning", "--max-messages", count)
        lines += kafka("console-consumer", *server, *options, "--timeout-ms", "20000").lines
    return [line for line in lines if line]


def both(cluster: ProcessCluster, *options: str) -> tuple[list[str], list[str]]:
    arguments = ("--bootstrap-server", cluster.bootstrap, *options)
    theirs = kafka("consumer-groups", *arguments)
    ours = run_quorate("consumer-groups", *arguments)
    assert (theirs.code, ours.returncode) == (0, 0), theirs.errors + ours.stderr
    return [each for each in theirs.lines if each], [
        each for each in ours.stdout.splitlines() if each
    ]


def test_a_group_goes_on_where_it_stopped(consumed: list[str]) -> None:
    assert consumed == [str(each) for each in range(10)]


@pytest.mark.usefixtures("consumed")
@pytest.mark.parametrize(
    "options",
    [
        ("--list",),
        ("--list", "--state"),
        ("--describe", "--group", GROUP),
        ("--describe", "--group", GROUP, "--state"),
        ("--reset-offsets", "--group", GROUP, "--topic", TOPIC, "--to-offset", "3", "--dry-run"),
        ("--reset-offsets", "--group", GROUP, "--topic", TOPIC, "--to-earliest", "--dry-run"),
        ("--reset-offsets", "--group", GROUP, "--all-topics", "--to-latest", "--dry-run"),
    ],
    ids=" ".join,
)
def test_the_tools_agree(cluster: ProcessCluster, options: tuple[str, ...]) -> None:
    theirs, ours = both(cluster, *options)
    assert ours == theirs
