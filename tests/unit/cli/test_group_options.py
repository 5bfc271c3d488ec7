"""`quorate consumer-groups`: options that do not belong together, before anything is asked."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from quorate.cli.main import main


@pytest.mark.parametrize(
    ("words", "one", "other"),
    [
        ("--delete --group g --topic t", "topic", "delete"),
        ("--delete --group g --dry-run", "dry-run", "delete"),
        ("--delete --group g --all-groups", "group", "all-groups"),
        ("--delete-offsets --group g --topic t --dry-run", "dry-run", "delete-offsets"),
        ("--describe --group g --topic t", "topic", "describe"),
        ("--describe --group g --to-offset 0", "to-offset", "describe"),
        ("--describe --group g --members --state", "members", "state"),
        ("--list --group g", "group", "list"),
        ("--reset-offsets --group g --topic t --all-topics --to-latest", "topic", "all-topics"),
        (
            "--reset-offsets --group g --topic t --to-latest --execute --dry-run",
            "execute",
            "dry-run",
        ),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(words: str, one: str, other: str) -> None:
    """`--delete --topic` deleted the group with the offsets of all topics."""
    command = ["consumer-groups", "--bootstrap-server", "127.0.0.1:1", *words.split()]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    assert f'Option "[{one}]" can\'t be used with option "[{other}]"' in result.output
