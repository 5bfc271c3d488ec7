"""The page of features that are missing names all of them, and none that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quorate.broker.kafka.groups.find_coordinator import NO_TRANSACTIONS
from quorate.cli.features.updates import WITH_RELEASES
from quorate.config.refused_keys import DECEIVING, why_refused
from quorate.quorum.controller.state.settings import SUPPORTED_FEATURES
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.raft.voter_changes import KRAFT_VERSION

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "not-supported.md").read_text()
README = (ROOT / "README.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|")
][2:]
FEATURES = [row[0] for row in ROWS]
PROPERTIES = [name for row in ROWS for name in re.findall(r"`([^`]+)`", row[2])]


def test_the_page_names_every_api_that_is_not_served_and_no_other() -> None:
    named = re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b|\bVOTE\b|\bENVELOPE\b", PAGE)
    assert sorted(named) == sorted(key.name for key in ApiKey if key not in APIS)


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_on_the_page_is_refused(name: str) -> None:
    assert why_refused(name.replace("*", "x"), "org.example.Some") is not None


@pytest.mark.parametrize("pattern", [pattern for pattern, _, _ in DECEIVING])
def test_the_page_names_every_refused_property(pattern: str) -> None:
    assert any(re.fullmatch(pattern, name.replace("*", "x")) for name in PROPERTIES)


def test_the_page_names_the_features_of_a_release_that_do_not_exist() -> None:
    """They are the reason why Kafka's tool cannot raise a cluster to a release in one request."""
    (row,) = [each for each in FEATURES if "`--release-version`" in each]
    named = set(re.findall(r"`([a-z.]+\.version)`", row))
    ours = {*SUPPORTED_FEATURES, KRAFT_VERSION}
    assert not named & ours
    assert {feature for feature, _, _ in WITH_RELEASES} - ours <= named


def test_the_page_names_the_users_of_transactions_that_the_broker_refuses() -> None:
    (row,) = [each for each in FEATURES if each.startswith("transactions")]
    assert "exactly-once support in Connect and Streams" in NO_TRANSACTIONS
    assert "exactly-once support of Connect and Streams" in row


def test_the_readme_lists_the_same_features() -> None:
    (box,) = re.findall(r"## Not supported\n\n.*?\n\n(.*?)\n\n", README, re.DOTALL)
    listed = [line.removeprefix("- ").rstrip(",.") for line in re.split(r"\n(?=- )", box)]
    assert [" ".join(each.split()) for each in listed] == FEATURES
