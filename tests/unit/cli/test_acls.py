"""`quorate acls` against a cluster in this process. tests/kafka compares it with Kafka's tool."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.config.authorizer_keys import STANDARD_AUTHORIZER
from quorate.testing import LocalCluster, ThreadedCluster

SECURED = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
ORDERS = "ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)"
ALICE_READS = "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)"


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThreadedCluster]:
    with LocalCluster(controllers=1, brokers=1, config=SECURED) as cluster:
        yield cluster


def run(cluster: ThreadedCluster, words: str, answer: str = "") -> Result:
    arguments = ["acls", "--bootstrap-server", cluster.bootstrap, *words.split()]
    return CliRunner().invoke(main, arguments, input=answer)


def test_acls_are_added_listed_and_removed_after_a_question(cluster: ThreadedCluster) -> None:
    added = run(cluster, "--add --allow-principal User:alice --operation Read --topic orders")
    assert added.output.splitlines() == [
        f"Adding ACLs for resource `{ORDERS}`: ",
        f" \t{ALICE_READS}",
        "",
    ]
    listed = [f"Current ACLs for resource `{ORDERS}`:", f"\t{ALICE_READS}", ""]
    assert run(cluster, "--list").output.splitlines() == listed
    assert run(cluster, "--list --principal User:bob").output.splitlines() == [
        "ACLs for principal `User:bob`"
    ]
    (acl,) = json.loads(run(cluster, "--list --topic orders --format json").output)
    assert (acl["principal"], acl["operation"]) == ("User:alice", "READ")
    for answer, left in (("n\n", listed), ("", listed), ("y\n", [])):
        removed = run(cluster, "--remove --topic orders", answer)
        assert removed.output.startswith("Are you sure you want to delete all ACLs for resource")
        assert run(cluster, "--list").output.splitlines() == left


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "exactly one action"),
        ("--add --list", "exactly one action"),
        ("--add --producer --group g --allow-principal User:a", "must specify a --topic"),
        ("--add --consumer --topic t --allow-principal User:a", "a --topic and a --group"),
        ("--add --topic t --allow-principal alice", "'alice' is not a principal"),
        ("--remove --topic t --principal User:a --force", "only available if --list is set"),
        ("--add --topic t --allow-principal User:a --idempotent", "if --producer is set"),
        ("--list --allow-principal User:a", 'can\'t be used with "[allow-principal]"'),
        (
            "--add --producer --topic t --allow-principal User:a --operation Read",
            'Option "[producer]" can\'t be used with "[operation]"',
        ),
        (
            "--add --consumer --topic t --group g --deny-principal User:a",
            'Option "[consumer]" can\'t be used with "[deny-principal]"',
        ),
        (
            "--add --consumer --topic t --group g --allow-principal User:a --cluster",
            "no --cluster or --transactional-id option",
        ),
    ],
)
def test_mistakes_are_wrong_usage(cluster: ThreadedCluster, words: str, sentence: str) -> None:
    result = run(cluster, words)
    assert result.exit_code == 2 and sentence in " ".join(result.output.split())
