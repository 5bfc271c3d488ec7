"""Java's .properties format."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.config.key import ConfigError
from quorate.config.properties import Entry, parse, render

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\t\n\r\f =:#!\\"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", [Entry("a", "b", 1)]),
        ("a : b", [Entry("a", "b", 1)]),
        ("a b c", [Entry("a", "b c", 1)]),
        ("  a=  b  ", [Entry("a", "b  ", 1)]),
        ("# a=b\n! c=d\n\n e=f", [Entry("e", "f", 4)]),
        ("a=b,\\\n    c\nd=e", [Entry("a", "b,c", 1), Entry("d", "e", 3)]),
        ("a=b\\\\\nc=d", [Entry("a", "b\\", 1), Entry("c", "d", 2)]),
        ("a=b\r\nc=d\re=f", [Entry("a", "b", 1), Entry("c", "d", 2), Entry("e", "f", 3)]),
        ("a\\=b\\:c\\ d=e", [Entry("a=b:c d", "e", 1)]),
        ("a=\\u0041\\t\\n\\q", [Entry("a", "A\t\nq", 1)]),
        ("a=\\ud83d\\ude00", [Entry("a", "\U0001f600", 1)]),
        ("a", [Entry("a", "", 1)]),
        ("a=", [Entry("a", "", 1)]),
        ("a==b", [Entry("a", "=b", 1)]),
        ("a=1\na=2", [Entry("a", "1", 1), Entry("a", "2", 2)]),
        ("a=b\\", [Entry("a", "b", 1)]),
        ("a=b # no comment", [Entry("a", "b # no comment", 1)]),
        ("\ufeffa=b", [Entry("a", "b", 1)]),
        ("a=b\\\n# part of it", [Entry("a", "b# part of it", 1)]),
    ],
)
def test_parse(text: str, expected: list[Entry]) -> None:
    assert parse(text) == expected


def test_a_bad_escape_names_file_and_line() -> None:
    with pytest.raises(ConfigError, match=r"f\.properties:2: .*four hexadecimal digits"):
        parse("a=b\nc=\\u12", "f.properties")


@given(st.dictionaries(TEXTS.filter(bool), TEXTS, max_size=5))
def test_render_is_read_back(values: dict[str, str]) -> None:
    assert {entry.name: entry.value for entry in parse(render(values))} == values
