"""The text of a principal, as Kafka writes and reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.quorum.principal import ANONYMOUS, Principal, parse_principal

KINDS = st.text(st.characters(exclude_characters=":"), min_size=1)


def test_a_name_may_contain_colons_and_signs_of_a_distinguished_name() -> None:
    """Kafka cuts at the first colon, so a certificate's name stays whole."""
    assert parse_principal("User:CN=a:b,O=c") == Principal("User", "CN=a:b,O=c")
    assert str(ANONYMOUS) == "User:ANONYMOUS"


@pytest.mark.parametrize("text", ["", "alice", ":alice", "User:", ":"])
def test_a_text_without_type_or_name_is_refused(text: str) -> None:
    """The message quotes the text and shows the form."""
    with pytest.raises(ValueError, match="must be like User:alice"):
        parse_principal(text)


@given(KINDS, st.text(min_size=1))
def test_the_text_of_a_principal_reads_back(kind: str, name: str) -> None:
    """Reading is the inverse of writing, so an ACL names whom it was written for."""
    assert parse_principal(str(Principal(kind, name))) == Principal(kind, name)
