"""The keys and the truststore of a listener with OAUTHBEARER, as its settings name them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from quorate.broker.kafka.sasl_listener import token_listeners
from quorate.broker.kafka.token_listener import TokenListener
from quorate.config.key import ConfigError
from quorate.config.loader import load
from quorate.quorum.sasl.bearer_token import UnknownKey
from tests.certificates import certificate, files
from tests.tokens import AUDIENCE, MODULE, VALIDATOR, TokenProvider
from tests.unit.rpc.kafka.fakes import FakeClock

PREFIX = "listener.name.in.oauthbearer."
NODE = {
    "process.roles": "broker",
    "node.id": "1",
    "controller.quorum.voters": "3@localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "IN://localhost:9092",
    "listener.security.protocol.map": "IN:SASL_SSL,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    f"{PREFIX}sasl.server.callback.handler.class": VALIDATOR,
    "sasl.oauthbearer.jwks.endpoint.url": "https://localhost/keys",
    "sasl.oauthbearer.expected.audience": AUDIENCE,
}


def token_listener(**settings: str) -> TokenListener:
    """Return the tokens of the listener, with further settings of the mechanism."""
    named = {f"{PREFIX}{name.replace('_', '.')}": value for name, value in settings.items()}
    config = load(None, environment={}, overrides={**NODE, **named}, hostname="here")
    (found,) = token_listeners(config, FakeClock()).values()
    return found


@pytest.mark.parametrize("content", [None, b"{}", b'{"keys": []}'])
def test_a_file_that_cannot_be_used_ends_the_start(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "keys.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"jwks\.endpoint\.url: .*keys\.json"):
        token_listener(sasl_oauthbearer_jwks_endpoint_url=f"file://{file}")


def test_the_truststore_of_the_endpoint(tmp_path: Path) -> None:
    found = files(tmp_path / "provider", certificate("CN=provider"))
    store = f'{MODULE} ssl.truststore.type="PEM" ssl.truststore.location="{{}}";'
    token_listener(sasl_jaas_config=store.format(found.ca))
    token_listener(sasl_jaas_config=f"{MODULE};")
    with pytest.raises(ConfigError, match="no-such-file"):
        token_listener(sasl_jaas_config=store.format("/no-such-file"))


def test_a_token_with_an_unknown_key_asks_for_newer_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keys.json"
    provider = TokenProvider()
    file.write_bytes(provider.jwks())
    listener = token_listener(sasl_oauthbearer_jwks_endpoint_url=f"file://{file}")
    asked: list[None] = []
    monkeypatch.setattr(listener.refresher, "refresh_early", lambda: asked.append(None))
    assert listener.verify(provider.token(1000)).user == "alice"
    assert asked == []
    with pytest.raises(UnknownKey):
        listener.verify(provider.token(1000, header={"kid": "new"}))
    assert asked == [None]


def test_a_broker_without_the_mechanism_imports_no_library_for_it() -> None:
    code = (
        "import sys, quorate.broker.node, quorate.quorum.node.node_core\n"
        "assert 'jwt' not in sys.modules and 'quorate.quorum.rpc.jwks' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
