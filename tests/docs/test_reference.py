"""The reference names every command, option, key and error of the code."""

from __future__ import annotations

import re

import pytest

from quorate.cli.client.errors import PARTLY
from quorate.cli.main import main
from quorate.cli.manual.description import Described, described
from quorate.cli.parsing.examples import EXAMPLES
from quorate.config.dynamic_keys import why_not_settable
from quorate.config.dynamic_tls_keys import DYNAMIC_TLS_KEYS
from quorate.config.key import Key, Kind, at_least
from quorate.config.not_in_effect import REASONS
from quorate.config.refused_keys import DECEIVING
from quorate.quorum.protocol.errors import ErrorCode
from tests.docs.reference import commands, errors, keys, keys_without_effect
from tests.docs.reference.markdown import text
from tests.docs.site.pages import ROOT

COMMANDS = [each for each in described(main) if each.path != "quorate"]
COMMAND_PAGES = commands.pages()
KEY_PAGES = keys.pages()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: str(each.path))
def test_a_command_has_its_section_with_all_options_and_examples(command: Described) -> None:
    page = COMMAND_PAGES[f"reference/commands/{command.path.split()[1]}.md"]
    heading = re.compile(rf"^#+ {re.escape(command.path)}$", re.MULTILINE)
    (start,) = heading.finditer(page)
    section = re.split(r"^#+ quorate ", page[start.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    assert command.usage in section
    assert all(f"- `{names}`" in section for names, _ in command.options)
    assert all(example in section for example in command.examples)
    assert f"[`quorate {command.path.split()[1]}`]" in COMMAND_PAGES[commands.INDEX]


@pytest.mark.parametrize("page", keys.TABLES)
def test_every_key_has_its_section(page: str) -> None:
    sections = dict(re.findall(r"^## (\S+)$(.*?)(?=^## |\Z)", KEY_PAGES[page], re.M | re.S))
    _, table = keys.TABLES[page]
    assert set(sections) == {name for name, key in table.items() if not key.internal}
    for name, section in sections.items():
        assert text(table[name].doc) in section
        assert "- Type: " in section and "- Default: " in section
        assert ("- Allowed: " in section) is (table[name].check is not None)


def test_the_range_of_a_key_is_that_of_its_check() -> None:
    key = Key("some.key", Kind.INT, 5, "A number.", at_least(3))
    assert keys.allowed_values(key) == "at least 3"
    assert "- Changes: at a restart" in KEY_PAGES["reference/node-keys.md"]
    sections = KEY_PAGES["reference/node-keys.md"].split("\n## ")
    (section,) = (each for each in sections if each.startswith("log.retention.ms\n"))
    assert "while the node runs, for one broker or for all" in section


@pytest.mark.parametrize("name", sorted(DYNAMIC_TLS_KEYS))
def test_a_key_of_tls_changes_with_the_prefix_of_a_listener(name: str) -> None:
    (section,) = re.findall(
        rf"^## {re.escape(name)}$(.*?)(?=^## |\Z)", KEY_PAGES["reference/node-keys.md"], re.M | re.S
    )
    assert why_not_settable([f"listener.name.external.{name}"]) is None
    assert (
        f"while the node runs, for one broker and listener, as `listener.name.<listener>.{name}`"
        in section
    )


def test_every_refused_and_every_ignored_property_is_named() -> None:
    page = keys_without_effect.pages()[keys_without_effect.PAGE]
    patterns = [each for _, several in REASONS for each in several]
    patterns += [pattern for pattern, _, _ in DECEIVING]
    for pattern in patterns:
        for name in keys_without_effect.names(pattern):
            assert f"`{name}`" in page
            assert re.fullmatch(pattern, name.replace("*", "x"))


def test_every_error_code_and_exit_code_is_named() -> None:
    page = errors.pages()[errors.PAGE]
    assert all(f"| {each.value} | `{each.name}` |" in page for each in ErrorCode)
    meanings = dict(errors.exit_meanings())
    assert [*meanings] == ["0", "1", "2", "3", "4"]
    assert "`chaos run all`" in meanings[str(PARTLY)]
    assert all(each.__doc__ for _, each in errors.exceptions())
    assert {"NodeFailed", "NoMetadataLog"} <= {each.__name__ for _, each in errors.exceptions()}


def test_plain_text_stays_plain() -> None:
    assert text("a <b> of `c_d` | *e*") == r"a \<b\> of `c_d` \| \*e\*"


def test_the_examples_of_commands_name_tables_and_files_of_the_right_kind() -> None:
    lines = [f"{path} {each}" for path, several in EXAMPLES.items() for each in several]
    tables = re.findall(r"^## (\w+)$", (ROOT / "docs" / "tables.md").read_text(), re.MULTILINE)
    queried = [found[1] for line in lines if (found := re.search(r"\bFROM (\w+)", line, re.I))]
    assert queried
    assert set(queried) <= set(tables)
    configs = [found[1] for line in lines if (found := re.search(r" --controller (\S+)", line))]
    assert configs
    assert all(name.endswith(".properties") for name in configs)
