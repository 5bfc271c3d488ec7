"""The rows of configs: what differs from the default first, without secrets."""

from __future__ import annotations

import dataclasses

from quorate.cli.console.views.config_rows import ConfigOwner, config_rows, default_of, rows_of
from quorate.config.sensitive import HIDDEN
from quorate.quorum.protocol.schemas.configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)

STATIC, DEFAULT = 4, 5


def config(
    name: str, value: str | None, source: int = DEFAULT, *, sensitive: bool = False
) -> DescribeConfigsResourceResult:
    """Return a config whose default is 7."""
    default = DescribeConfigsSynonym(name=name, value="7", source=DEFAULT)
    return DescribeConfigsResourceResult(
        name=name,
        value=value,
        read_only=False,
        config_source=source,
        is_sensitive=sensitive,
        synonyms=(default,),
    )


def test_what_differs_from_the_default_comes_first_for_all_owners() -> None:
    one = rows_of(ConfigOwner("broker", "1"), [config("b", "7"), config("a", "8", STATIC)])
    two = rows_of(ConfigOwner("topic", "t"), [config("c", "9", 1)])
    rows, left_out = config_rows([one, two], 10)
    assert rows == [
        ("broker", "1", "a", "8", "STATIC_BROKER_CONFIG", "7"),
        ("topic", "t", "c", "9", "DYNAMIC_TOPIC_CONFIG", "7"),
        ("broker", "1", "b", "7", "DEFAULT_CONFIG", "7"),
    ]
    assert left_out == 0
    assert config_rows([one, two], 2) == (rows[:2], 1)


def test_a_secret_is_hidden_whatever_the_broker_returns() -> None:
    found = rows_of(ConfigOwner("broker", "1"), [config("p", "x", STATIC, sensitive=True)])
    ((*_, value, source, default),) = found.changed
    assert (value, source, default) == (HIDDEN, "STATIC_BROKER_CONFIG", None)


def test_a_default_of_another_key_names_it() -> None:
    other = DescribeConfigsSynonym(name="log.retention.hours", value="168", source=DEFAULT)
    changed = dataclasses.replace(config("retention.ms", "5", 1), synonyms=(other,))
    assert default_of(changed) == "log.retention.hours=168"
    assert default_of(dataclasses.replace(changed, synonyms=())) is None
