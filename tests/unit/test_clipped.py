"""Texts that quote a client's value do not grow with it, and take no control characters over."""

from __future__ import annotations

from quorate.quorum.clipped import clip_bytes, clipped, quoted, shown


def test_a_short_text_stays_as_it_is() -> None:
    assert clipped("x" * 100) == shown("x" * 100) == "x" * 100
    assert quoted("it") == "'it'"


def test_a_long_text_is_cut_and_its_length_is_told() -> None:
    assert clipped("x" * 101) == "x" * 100 + "... (101 characters)"
    assert quoted("x" * 101) == shown("x" * 101) == "'" + "x" * 100 + "'... (101 characters)"


def test_a_line_break_ends_no_log_line() -> None:
    assert shown("a\nERROR b") == "'a\\nERROR b'"


def test_bytes_are_cut_between_characters() -> None:
    text = "a\u00e4\u20ac\U0001f98a".encode()
    cut = [clip_bytes(text, size).decode() for size in range(len(text) + 1)]
    two, three = "a\u00e4", "a\u00e4\u20ac"
    assert cut == ["", "a", "a", two, two, two, three, three, three, three, three + "\U0001f98a"]
