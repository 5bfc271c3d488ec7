"""The tokens of a node change with their file."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, cast

import pytest

from quorate.config.http_token import HTTP_TOKEN_FILE
from quorate.config.node_config import NodeConfig
from quorate.quorum.watch import http_tokens
from quorate.quorum.watch.http_tokens import HttpTokens

OLD, NEW = "old-token-of-scrapers", "new-token-of-scrapers"
pytestmark = pytest.mark.timeout(20)


class TokenFile:
    """A file with tokens. Each content has another time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._time_ns = 1_000_000_000
        self.put(OLD)

    def put(self, text: str) -> None:
        self.path.write_text(text)
        self.path.chmod(0o600)
        self._time_ns += 1_000_000_000
        os.utime(self.path, ns=(self._time_ns, self._time_ns))

    def tokens(self) -> HttpTokens:
        config: Any = {HTTP_TOKEN_FILE: str(self.path)}
        return HttpTokens(cast(NodeConfig, config))


async def test_scrapers_change_their_token_without_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_tokens, "CHECK_INTERVAL_S", 0.01)
    file = TokenFile(tmp_path / "token")
    tokens = file.tokens()
    tokens.start()

    async def become(expected: tuple[str, ...]) -> None:
        async with asyncio.timeout(5):
            while tokens() != expected:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    file.put(f"{NEW}\n{OLD}\n")
    await become((NEW, OLD))
    file.put("no token")
    async with asyncio.timeout(5):
        while "the tokens in use stay" not in caplog.text:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    file.path.unlink()
    await asyncio.sleep(0.05)
    assert tokens() == (NEW, OLD)
    file.put(NEW)
    await become((NEW,))
    tokens.close()
    assert NEW not in caplog.text and caplog.text.count("the tokens in use stay") == 2


async def test_a_node_without_tokens_follows_no_file() -> None:
    config: Any = {HTTP_TOKEN_FILE: None}
    tokens = HttpTokens(cast(NodeConfig, config))
    tokens.start()
    assert tokens() == () and len(asyncio.all_tasks()) == 1
