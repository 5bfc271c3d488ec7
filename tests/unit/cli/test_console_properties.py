"""Options of the console tools and of the demo that would have no effect, or no meaning."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from quorate.cli.console_properties import properties_of
from quorate.cli.main import main

PRODUCER = ("console-producer", "-b", "h:1", "--topic", "t", "--property")
CONSUMER = ("console-consumer", "-b", "h:1", "--topic", "t", "--property")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((*PRODUCER, "parse.headers=true"), "the property 'parse.headers' has no effect here."),
        ((*PRODUCER, "parse.key"), "--property 'parse.key' must be NAME=VALUE"),
        ((*PRODUCER, "key.separator="), "key.separator must not be empty"),
        ((*CONSUMER, "print.keys=true"), "It must be one of print.timestamp, print.partition,"),
        (("demo", "--seconds", "nan"), "--seconds must be a positive number, not nan"),
        (("demo", "--seconds", "-1"), "--seconds must be a positive number, not -1.0"),
        (("demo", "--lines", "0"), "0 is not in the range x>=1"),
    ],
)
def test_what_has_no_effect_is_refused(arguments: tuple[str, ...], text: str) -> None:
    ended = CliRunner().invoke(main, arguments)
    assert ended.exit_code == 2
    assert text in ended.output


def test_the_last_value_of_a_property_counts() -> None:
    assert properties_of(["a=1", "b=x=y", "a=2"], ("a", "b")) == {"a": "2", "b": "x=y"}
