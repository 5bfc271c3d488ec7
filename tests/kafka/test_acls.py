"""Apache Kafka's AclCommand and `quorate acls`, against a Quorate cluster with an authorizer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quorate.config.authorizer_keys import STANDARD_AUTHORIZER
from tests.clients.cluster import ProcessCluster, run_quorate, running
from tests.kafka.tools import Ended, kafka, missing

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
PRODUCER = "--producer --topic t1 --transactional-id x --idempotent"
CONSUMER = "--consumer --topic t --group g --resource-pattern-type prefixed"
ADDITIONS = (
    "--allow-principal User:alice --allow-principal User:bob --topic t1 --operation Read",
    f"--allow-principal User:alice {PRODUCER}",
    f"--allow-principal User:carl {CONSUMER}",
    "--deny-principal User:eve --deny-host 10.0.0.1 --cluster --operation All",
)
LISTS = (
    "",
    "--topic t1",
    "--topic t1 --resource-pattern-type match",
    "--topic t --resource-pattern-type prefixed",
    "--principal User:alice --principal User:eve",
)
MISTAKES = (
    "--add --allow-principal User:x --topic t --operation CreateTokens",
    "--add --allow-principal User:x",
    "--add --topic t",
    "--add --allow-principal User:x --topic t --resource-pattern-type any",
)
REMOVALS = (
    "--topic t1 --allow-principal User:bob --operation Read",
    "--topic t --resource-pattern-type prefixed",
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    settings = (
        f"authorizer.class.name={STANDARD_AUTHORIZER}",
        "super.users=User:ANONYMOUS",
    )
    overrides = [word for each in settings for word in ("--override", each)]
    options = ("--controllers", "1", "--brokers", "1", *overrides)
    with running(tmp_path_factory.mktemp("acls") / "cluster", *options) as shared:
        yield shared


def ours(cluster: ProcessCluster, *words: str) -> Ended:
    ran = run_quorate("acls", "--bootstrap-server", cluster.bootstrap, *words)
    return Ended(ran.returncode, ran.stdout.splitlines(), ran.stderr)


def theirs(cluster: ProcessCluster, *words: str) -> Ended:
    return kafka("acls", "--bootstrap-server", cluster.bootstrap, *words)


def sorted_lines(ended: Ended) -> list[str]:
    """Kafka's tool prints resources and ACLs in the order of their hashes, and one empty line more
    at its end."""
    assert ended.code == 0, ended.errors
    return sorted(line.strip() for line in ended.lines if line.strip())


def test_both_tools_add_list_and_remove_the_same(cluster: ProcessCluster) -> None:
    listings = []
    for tool in (ours, theirs):
        added = [sorted_lines(tool(cluster, "--add", *each.split())) for each in ADDITIONS]
        pairs = [
            [sorted_lines(each(cluster, "--list", *words.split())) for each in (ours, theirs)]
            for words in LISTS
        ]
        assert all(mine == kafkas and mine for mine, kafkas in pairs)
        for each in REMOVALS:
            assert not sorted_lines(tool(cluster, "--remove", "--force", *each.split()))
        left = sorted_lines(ours(cluster, "--list"))
        assert not any("User:bob" in line or "name=t, " in line for line in left)
        listings.append((added, [mine for mine, _ in pairs], left))
    assert listings[0] == listings[1]


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_refused_with_the_same_sentence(cluster: ProcessCluster, words: str) -> None:
    mine, kafkas = ours(cluster, *words.split()), theirs(cluster, *words.split())
    assert mine.code == 2 and kafkas.code == 1
    sentence = kafkas.errors.splitlines()[0].partition(" [")[0]
    assert sentence in mine.errors.replace("\n", " ")
