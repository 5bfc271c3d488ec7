"""docs/json-output.md names every command that prints JSON, and the fields of its real output."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from quorate.cli.main import main
from tests.docs import json_output
from tests.docs.json_output import (
    ELSEWHERE,
    ON_A_LOG,
    ON_A_WHOLE_CLUSTER,
    PAGE,
    WITHOUT_A_BROKER,
    WITHOUT_BROKERS,
)

SHOWN = {**ON_A_LOG, **ON_A_WHOLE_CLUSTER, **WITHOUT_A_BROKER, **WITHOUT_BROKERS}


def with_json(command: click.Command, context: click.Context, path: str) -> Iterator[str]:
    """Yield the paths of the commands whose output can be JSON."""
    kinds = [each.type for each in command.get_params(context)]
    if any(isinstance(kind, click.Choice) and "json" in kind.choices for kind in kinds):
        yield path
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            inside = click.Context(inner, parent=context, info_name=name)
            yield from with_json(inner, inside, f"{path} {name}".strip())


def test_the_page_names_every_command_that_prints_json() -> None:
    context = click.Context(main, info_name="quorate", **main.context_settings)
    commands = set(with_json(main, context, ""))
    named = {" ".join(word for word in each.split() if not word.startswith("--")) for each in SHOWN}
    assert commands == named | set(ELSEWHERE)
    text = PAGE.read_text()
    assert all(f"## quorate {each}\n" in text for each in SHOWN)
    assert all(f"- `quorate {each}`: " in text for each in ELSEWHERE)


def test_the_fields_of_some_values() -> None:
    first: dict[str, object] = {"a": 1, "b": [], "c": {"7": "x"}, "d": {}, "e": [{"f": True}]}
    second: dict[str, object] = {"a": None, "b": [1.5], "c": {}, "d": {}, "e": []}
    assert json_output.fields([first, second]) == {
        "a": "integer or null",
        "c.*": "string",
        "d": "empty here",
        "e[].f": "boolean",
        "b[]": "number",
    }


@pytest.mark.long
def test_the_page_is_what_the_commands_print_now() -> None:
    fresh = json_output.page(json_output.seen())
    assert PAGE.read_text() == fresh, "run `python -m tests.docs.json_output`"
