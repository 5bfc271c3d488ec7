"""One read of a key set, from a real https endpoint or a file."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from quorate.quorum.rpc.jwks import source
from quorate.quorum.rpc.jwks.source import KeyEndpoint, KeyFile, SourceFailed, source_of
from quorate.quorum.sasl.key_set import MAX_JWKS_BYTES
from tests.certificates import certificate, files

KEYS = b'{"keys": []}'


class Provider:
    """An https server on this machine that answers GET /keys with `answer`."""

    def __init__(self, directory: Path, host: str = "localhost") -> None:
        self.certificate = files(directory, certificate("CN=provider", hosts=[host]))
        self.answer = web.Response(body=KEYS)
        self.delay_s = 0.0
        self.requests = 0

    async def keys(self, request: web.Request) -> web.Response:
        self.requests += 1
        assert request.headers["Accept-Encoding"] == "identity"
        await asyncio.sleep(self.delay_s)
        return self.answer

    @asynccontextmanager
    async def running(self) -> AsyncIterator[KeyEndpoint]:
        """Run the server, and yield the source that trusts it."""
        app = web.Application()
        app.router.add_get("/keys", self.keys)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate.keystore)
        runner = web.AppRunner(app, shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port = runner.addresses[0][1]
        trust = ssl.create_default_context(cafile=self.certificate.ca)
        try:
            yield KeyEndpoint(f"https://localhost:{port}/keys", trust)
        finally:
            await runner.cleanup()


@pytest.fixture
def provider(tmp_path: Path) -> Provider:
    return Provider(tmp_path / "provider")


async def test_the_keys_of_an_endpoint(provider: Provider) -> None:
    async with provider.running() as endpoint:
        assert await endpoint.read() == KEYS
        with pytest.raises(SourceFailed, match="CERTIFICATE_VERIFY_FAILED"):
            await KeyEndpoint(endpoint.url, ssl.create_default_context()).read()
        assert provider.requests == 1
    with pytest.raises(SourceFailed, match="Connect"):
        await endpoint.read()


async def test_an_endpoint_with_another_name(tmp_path: Path) -> None:
    async with Provider(tmp_path / "other", "other.example.com").running() as endpoint:
        with pytest.raises(SourceFailed, match="CERTIFICATE_VERIFY_FAILED"):
            await endpoint.read()


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_another_status_is_a_failure(provider: Provider, status: int) -> None:
    async with provider.running() as endpoint:
        provider.answer = web.Response(status=status, headers={"Location": "http://localhost/"})
        with pytest.raises(SourceFailed, match=f"answers with status {status}"):
            await endpoint.read()


async def test_an_answer_is_bounded(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    async with provider.running() as endpoint:
        provider.answer = web.Response(body=b"x" * (4 * MAX_JWKS_BYTES))
        assert len(await endpoint.read()) == MAX_JWKS_BYTES + 1
        monkeypatch.setattr(source, "FETCH_TIMEOUT_S", 0.05)
        provider.answer = web.Response(body=KEYS)
        provider.delay_s = 0.5
        with pytest.raises(SourceFailed, match=r"no whole answer within 0\.05 s"):
            await endpoint.read()


async def test_the_keys_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a key set.json"
    context = ssl.create_default_context()
    file = source_of(f"file://{str(path).replace(' ', '%20')}", context)
    assert file == KeyFile(str(path))
    with pytest.raises(SourceFailed, match="No such file"):
        await file.read()
    path.write_bytes(KEYS)
    assert await file.read() == KEYS
    path.write_bytes(b"x" * (2 * MAX_JWKS_BYTES))
    assert len(await file.read()) == MAX_JWKS_BYTES + 1
    with pytest.raises(SourceFailed):
        await KeyFile("\0").read()
    assert source_of("https://h/keys", context) == KeyEndpoint("https://h/keys", context)
