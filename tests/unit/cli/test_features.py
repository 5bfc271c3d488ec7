"""features upgrade, downgrade and disable: the requests, the output, and the exit status."""

from __future__ import annotations

from typing import cast

import pytest
from click.testing import CliRunner, Result

from quorate.cli.client.admin import Admin
from quorate.cli.client.errors import Refused
from quorate.cli.features.updates import update
from quorate.cli.main import main
from quorate.quorum.controller.features.update_features import UpgradeType
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from quorate.quorum.raft.voter_changes import KRAFT_VERSION
from tests.unit.cli.fake_kafka import fake_kafka

NAME = "metadata.version"
SAID_NO = UpdateFeaturesResponse(error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message="No.")


def run(
    answer: UpdateFeaturesResponse, *arguments: str
) -> tuple[Result, list[tuple[str, int, int]]]:
    """Return the result, and the updates (feature, level, type) in the requests to the cluster."""
    with fake_kafka({UpdateFeaturesRequest: lambda request: answer}) as server:
        command = ["features", "--bootstrap-server", server.address, *arguments]
        result = CliRunner().invoke(main, command)
        updates = [
            (each.feature, each.max_version_level, each.upgrade_type)
            for request in server.requests
            for each in request.feature_updates
        ]
    return result, updates


DONE = {
    ("upgrade", "--feature", f"{NAME}=27"): ((NAME, 27, 1), f"{NAME} was upgraded to 27."),
    ("upgrade", "--release-version", "4.1-IV1"): ((NAME, 27, 1), f"{NAME} was upgraded to 27."),
    ("upgrade", "--release-version", "4.1"): ((NAME, 27, 1), f"{NAME} was upgraded to 27."),
    ("upgrade", "--release-version", "4.1.1"): ((NAME, 27, 1), f"{NAME} was upgraded to 27."),
    ("upgrade", "--feature", "f=3", "--dry-run"): (("f", 3, 1), "f can be upgraded to 3."),
    ("downgrade", "--feature", "f=2"): (("f", 2, 2), "f was downgraded to 2."),
    ("downgrade", "--metadata", "4.0-IV3"): ((NAME, 25, 2), f"{NAME} was downgraded to 25."),
    ("downgrade", "--feature", "f=2", "--unsafe"): (("f", 2, 3), "f was downgraded to 2."),
    ("disable", "--feature", "f"): (("f", 0, 2), "f was disabled."),
}


@pytest.mark.parametrize(("arguments", "expected"), DONE.items(), ids=lambda each: str(each)[:50])
def test_done(arguments: tuple[str, ...], expected: tuple[tuple[str, int, int], str]) -> None:
    result, updates = run(UpdateFeaturesResponse(), *arguments)
    assert (result.output, result.exit_code) == (expected[1] + "\n", 0)
    assert updates == [expected[0]]


def test_the_cluster_said_no() -> None:
    result, _ = run(SAID_NO, "upgrade", "--feature", "f=3", "--feature", "e=1")
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        "Could not upgrade e to 1. No.",
        "Could not upgrade f to 3. No.",
        "Error: 2 out of 2 operation(s) failed.",
    ]
    result, _ = run(SAID_NO, "disable", "--feature", "f", "--dry-run")
    assert result.output.splitlines()[0] == "Can not disable f. No."


class Cluster:
    """Refuses the updates of `wrong`, and records the features of each request."""

    def __init__(self, wrong: str = "") -> None:
        self.requests: list[list[str]] = []
        self._wrong = wrong

    def serves(self, api_key: int) -> bool:
        return False

    def change(self, request: UpdateFeaturesRequest, *_: object) -> UpdateFeaturesResponse:
        names = [each.feature for each in request.feature_updates]
        self.requests.append(names)
        return SAID_NO if self._wrong in names else UpdateFeaturesResponse()


PARTS = [{NAME: 27, "e": 1}, {KRAFT_VERSION: 1}]


def test_raft_gets_a_request_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster()
    update(cast(Admin, cluster), "upgrade", PARTS, UpgradeType.UPGRADE, dry_run=False)
    assert cluster.requests == [[NAME, "e"], [KRAFT_VERSION]]
    assert capsys.readouterr().out.splitlines() == [
        "e was upgraded to 1.",
        "kraft.version was upgraded to 1.",
        "metadata.version was upgraded to 27.",
    ]


def test_after_a_failure_raft_is_not_asked(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster(wrong="e")
    with pytest.raises(Refused, match="3 out of 3"):
        update(cast(Admin, cluster), "upgrade", PARTS, UpgradeType.UPGRADE, dry_run=False)
    assert cluster.requests == [[NAME, "e"]]
    assert "Could not upgrade kraft.version to 1. No." in capsys.readouterr().out


def test_only_raft_may_fail() -> None:
    with pytest.raises(Refused, match="1 out of 3"):
        update(
            cast(Admin, Cluster(wrong=KRAFT_VERSION)),
            *("upgrade", PARTS, UpgradeType.UPGRADE),
            dry_run=False,
        )


WRONG = {
    ("upgrade",): "You must specify at least one feature to upgrade",
    ("upgrade", "--feature", "f"): "equals sign not found",
    ("upgrade", "--feature", "f=x"): "unable to parse x as a short",
    ("downgrade", "--feature", "f=1", "--feature", "f=2"): "f was specified more than once",
    ("upgrade", "--feature", "f=1", "--release-version", "4.1-IV1"): "with other feature flags",
}


@pytest.mark.parametrize(("arguments", "why"), WRONG.items(), ids=lambda each: str(each)[:50])
def test_wrong_usage(arguments: tuple[str, ...], why: str) -> None:
    result, updates = run(UpdateFeaturesResponse(), *arguments)
    assert result.exit_code == 2
    assert why in result.output
    assert not updates


def test_an_unknown_release() -> None:
    result, updates = run(UpdateFeaturesResponse(), "upgrade", "--release-version", "9.9")
    assert result.exit_code == 1
    assert "Unknown metadata.version 9.9. Supported metadata.version are 3.3-IV3," in result.output
    assert not updates


def test_no_upgrade_leads_to_level_0() -> None:
    """Kafka's client refuses it, too. A feature at level 0 would count as upgraded."""
    result, updates = run(UpdateFeaturesResponse(), "upgrade", "--feature", "f=0")
    assert result.exit_code == 1
    assert "Level 0 of f is no upgrade. Use downgrade or disable." in result.output
    assert not updates


TABLES = {
    ("version-mapping",): (
        "metadata.version=27 (4.1-IV1)\nkraft.version=1\neligible.leader.replicas.version=1\n"
    ),
    ("version-mapping", "--release-version", "3.8-IV0"): (
        "metadata.version=20 (3.8-IV0)\nkraft.version=0\neligible.leader.replicas.version=0\n"
    ),
    ("version-mapping", "--release-version", "4.0"): (
        "metadata.version=25 (4.0)\nkraft.version=1\neligible.leader.replicas.version=0\n"
    ),
    (
        *("feature-dependencies", "--feature", "eligible.leader.replicas.version=1"),
        *("--feature", "kraft.version=1", "--feature", "metadata.version=27"),
    ): (
        "eligible.leader.replicas.version=1 requires:\n    metadata.version=23 (4.0-IV1)\n"
        "kraft.version=1 has no dependencies.\n"
        "metadata.version=27 (4.1-IV1) has no dependencies.\n"
    ),
}


@pytest.mark.parametrize(("arguments", "output"), TABLES.items())
def test_tables_have_kafkas_form_and_need_no_cluster(
    arguments: tuple[str, ...], output: str
) -> None:
    result = CliRunner().invoke(main, ["features", *arguments])
    assert (result.exit_code, result.output) == (0, output)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ("version-mapping", "--release-version", "9"),
            "Unknown release version '9'. Supported versions are: 3.3-IV3 to 4.1-IV1",
        ),
        (("feature-dependencies", "--feature", "x=1"), "Unknown feature: x"),
        (
            ("feature-dependencies", "--feature", "kraft.version=9"),
            "No feature:kraft.version with feature level 9",
        ),
    ],
)
def test_tables_refuse_what_no_release_has(arguments: tuple[str, ...], why: str) -> None:
    result = CliRunner().invoke(main, ["features", *arguments])
    assert result.exit_code != 0
    assert why in result.output
