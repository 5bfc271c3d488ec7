"""The file of quorate.http.token.file."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from quorate.config.http_token import HTTP_TOKEN_FILE, read_tokens
from quorate.config.key import ConfigError

TOKEN = "abcdefghijklmnop"


def test_the_token_is_the_text_of_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    assert read_tokens({HTTP_TOKEN_FILE: str(path)}) == (TOKEN,)
    assert not caplog.messages
    path.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        assert read_tokens({HTTP_TOKEN_FILE: str(path)}) == (TOKEN,)
    assert caplog.messages == [f"{HTTP_TOKEN_FILE}: other users can read {path}: chmod 600"]


def test_two_tokens_have_lines_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n\n{TOKEN[::-1]}\n")
    assert read_tokens({HTTP_TOKEN_FILE: str(path)}) == (TOKEN, TOKEN[::-1])


def test_without_a_file_there_is_no_token() -> None:
    assert read_tokens({HTTP_TOKEN_FILE: None}) == ()


@pytest.mark.parametrize(
    "text",
    ["", "short", "two words of enough length", "é" * 20, "x" * 600, f"{TOKEN}\n" * 3],
)
def test_a_file_without_a_token_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text)
    with pytest.raises(ConfigError, match=HTTP_TOKEN_FILE) as raised:
        read_tokens({HTTP_TOKEN_FILE: str(path)})
    assert not text or text not in str(raised.value)
    with pytest.raises(ConfigError, match="No such file"):
        read_tokens({HTTP_TOKEN_FILE: str(tmp_path / "none")})
