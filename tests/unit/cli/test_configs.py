"""`quorate configs`: options that belong together, and changes that are checked before any is made.

`test_cluster_commands.py` has the tests of its lines."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.quorum.protocol.schemas import client_quotas
from quorate.quorum.protocol.schemas import user_scram_credentials as scram
from tests.unit.cli.fake_kafka import Answer
from tests.unit.cli.test_cluster_commands import CONFIGS, run

CREDENTIAL = "SCRAM-SHA-256=[password=secret]"


def changed_credential(_: Any) -> scram.AlterUserScramCredentialsResponse:
    """Answer AlterUserScramCredentials."""
    result = scram.AlterUserScramCredentialsResult(user="alice", error_code=0, error_message=None)
    return scram.AlterUserScramCredentialsResponse(results=(result,))


QUOTAS: dict[Any, Answer] = {
    client_quotas.DescribeClientQuotasRequest: (
        lambda _: client_quotas.DescribeClientQuotasResponse(entries=())
    ),
    client_quotas.AlterClientQuotasRequest: (
        lambda _: client_quotas.AlterClientQuotasResponse(entries=())
    ),
    scram.AlterUserScramCredentialsRequest: changed_credential,
}


def test_a_repeated_option_adds_to_the_first_one() -> None:
    """Only the last --add-config was sent, without an error."""
    result, requests = run(
        CONFIGS,
        *("configs", "--alter", "--topic", "t"),
        *("--add-config", "cleanup.policy=[compact,delete]", "--add-config", "a=1,b=2"),
    )
    assert result.exit_code == 0
    sent = {each.name: each.value for each in requests[-1].resources[0].configs}
    assert sent == {"cleanup.policy": "compact,delete", "a": "1", "b": "2"}


@pytest.mark.parametrize("option", ["--add-config=a=1", "--delete-config=a"])
def test_describe_refuses_the_options_of_a_change(option: str) -> None:
    result, requests = run(CONFIGS, "configs", "--describe", "--topic", "t", option)
    assert result.exit_code == 2
    assert not requests


@pytest.mark.parametrize(
    ("options", "exit_code"),
    [
        (("--add-config", f"{CREDENTIAL},producer_byte_rat=1"), 1),
        (("--add-config", f"{CREDENTIAL},producer_byte_rate=many"), 2),
        (("--add-config", CREDENTIAL, "--delete-config", "producer_byte_rate"), 1),
        (("--delete-config", "SCRAM-SHA-256,producer_byte_rate"), 1),
    ],
)
def test_a_wrong_quota_leaves_the_credential_as_it_was(
    options: tuple[str, ...], exit_code: int
) -> None:
    """The credential was changed before the quota was checked."""
    result, requests = run(QUOTAS, "configs", "--alter", "--user", "alice", *options)
    assert result.exit_code == exit_code
    assert {type(each) for each in requests} <= {client_quotas.DescribeClientQuotasRequest}


def test_a_credential_and_a_quota_are_changed_by_one_command() -> None:
    add = ("--add-config", f"{CREDENTIAL},producer_byte_rate=1")
    result, requests = run(QUOTAS, "configs", "--alter", "--user", "alice", *add)
    assert (result.exit_code, result.output) == (0, "Completed updating config for user alice.\n")
    assert [type(each) for each in requests] == [
        scram.AlterUserScramCredentialsRequest,
        client_quotas.AlterClientQuotasRequest,
    ]
