"""The tokens of a command: the keys of both families, the endpoint, and renewals."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.client import token_source
from quorate.cli.client.client_properties import client_security
from quorate.cli.client.errors import Refused
from quorate.cli.client.sasl_login import TokenLogin, login_steps
from quorate.cli.client.token_settings import CLIENT_IDS, SECRETS
from quorate.cli.client.token_source import TokenSettings, TokenSource, basic, lifetime_of
from quorate.quorum.protocol.schemas.sasl_authenticate import SaslAuthenticateResponse
from quorate.quorum.protocol.schemas.sasl_handshake import SaslHandshakeResponse
from tests.token_server import CLIENT, SECRET, TokenServer, token_server
from tests.tokens import MODULE

URL = "sasl.oauthbearer.token.endpoint.url"
HANDLER = "sasl.login.callback.handler.class"
OURS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


def login(entries: dict[str, str]) -> TokenLogin:
    """Return the login of a client's file."""
    base = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    found = client_security({**base, **entries}).login
    assert isinstance(found, TokenLogin)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenServer]:
    with token_server(tmp_path_factory.mktemp("provider") / "files") as running:
        yield running


def families(server: TokenServer) -> dict[str, dict[str, str]]:
    """Return the entries of each family that ask the server for tokens with a scope."""
    assert server.certificate is not None
    ca = str(server.certificate.ca)
    trust = f'ssl.truststore.type="PEM" ssl.truststore.location="{ca}"'
    client = f'clientId="{CLIENT}" clientSecret="{SECRET}" scope="a b"'
    java = {HANDLER: OURS, URL: server.token_url}
    rest = {"sasl.oauthbearer.scope": "a b", "sasl.oauthbearer.header.urlencode": "false"}
    return {
        "java": {**java, "sasl.jaas.config": f"{MODULE} {client} {trust};"},
        "java keys": {
            **java,
            **rest,
            CLIENT_IDS[0]: CLIENT,
            SECRETS[0]: SECRET,
            "sasl.jaas.config": f"{MODULE} {trust};",
        },
        "librdkafka": {
            "sasl.oauthbearer.method": "oidc",
            URL: server.token_url,
            CLIENT_IDS[1]: CLIENT,
            SECRETS[1]: SECRET,
            "sasl.oauthbearer.scope": "a b",
            "https.ca.location": ca,
        },
        "librdkafka text": {
            URL: server.token_url,
            CLIENT_IDS[1]: CLIENT,
            SECRETS[1]: SECRET,
            "sasl.oauthbearer.scope": "a b",
            "https.ca.pem": server.certificate.ca.read_text(),
        },
    }


@pytest.mark.parametrize("family", ["java", "java keys", "librdkafka", "librdkafka text"])
def test_the_keys_of_both_families_ask_for_a_token(server: TokenServer, family: str) -> None:
    server.requests.clear()
    found = login(families(server)[family])
    assert found.source.current().count(".") == 2
    assert server.requests == [{"grant_type": "client_credentials", "scope": "a b"}]
    assert "canary" not in repr(found) + repr(found.source.settings)


def test_a_wrong_secret_and_an_untrusted_endpoint(server: TokenServer) -> None:
    entries = families(server)["librdkafka"]
    with pytest.raises(Refused, match=r"answers with status 401\. Check") as raised:
        login({**entries, SECRETS[1]: "canary"}).source.current()
    assert "canary" not in str(raised.value)
    del entries["https.ca.location"]
    with pytest.raises(Refused, match="CERTIFICATE_VERIFY_FAILED"):
        login(entries).source.current()


def test_a_token_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a token"
    found = login({URL: f"file://{str(file).replace(' ', '%20')}"})
    with pytest.raises(Refused, match="No such file"):
        found.source.current()
    for text in ("a.b.c\n", "d.e.f"):
        file.write_text(text)
        assert found.source.current() == text.strip()
    for bad in ("", "a b", "ä"):
        file.write_text(bad)
        with pytest.raises(Refused):
            found.source.current()


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, f"{URL}: must be set"),
        ({URL: "https://h/token"}, "must name the client of the token endpoint"),
        ({URL: "http://h/token"}, "the secret of the client would travel in clear"),
        ({URL: "ftp://h/token"}, "must begin with https:// or file:///"),
        ({URL: "https:///token"}, "must begin with https:// or file:///"),
        ({URL: "https://[x/token"}, "is no URL"),
        ({URL: "http://c:canary@h/token"}, "neither a user nor a password"),
        ({URL: "https://c:canary@h/token"}, "neither a user nor a password"),
        ({URL: "https://h/tökén"}, "must have ASCII characters only"),
        ({HANDLER: "com.example.Mine"}, f"{HANDLER}: value 'com.example.Mine' must be {OURS}"),
        ({"sasl.oauthbearer.method": "default"}, "must be oidc"),
        ({"sasl.oauthbearer.header.urlencode": "yes"}, "must be true or false"),
        ({"sasl.oauthbearer.extensions": "a=b"}, "does not support this key"),
        ({"sasl.oauthbearer.config": "principal=x"}, "does not support this key"),
        ({"sasl.oauthbearer.assertion.file": "/x"}, "does not support this key"),
        ({"sasl.jaas.config": f'{MODULE} unsecuredLoginStringClaim_sub="canary";'}, "may only"),
        ({"sasl.jaas.config": f'{MODULE} extension_a="canary";'}, "may only have the options"),
        ({"sasl.jaas.config": 'x required clientSecret="canary";'}, "must begin with org.apache"),
        ({"sasl.jaas.config": "canary"}, "is no JAAS value"),
    ],
)
def test_what_cannot_be_honoured_is_refused(entries: dict[str, str], message: str) -> None:
    with pytest.raises(Refused) as raised:
        login(entries)
    assert message in str(raised.value)
    assert "canary" not in str(raised.value)


def test_a_missing_truststore_is_refused() -> None:
    entries = {URL: "https://h/token", CLIENT_IDS[1]: "c", SECRETS[1]: "canary"}
    with pytest.raises(Refused, match="no-such-file"):
        login({**entries, "https.ca.location": "/no-such-file"})


class Endpoint:
    """The answers of an endpoint without a server, on a clock of the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s, self.asked, self.down = 1000.0, 0, False
        monkeypatch.setattr(token_source, "ask", self.ask)
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)

    def ask(self, *_: object) -> dict[str, Any]:
        self.asked += 1
        if self.down:
            raise Refused("it is down")
        return {"access_token": f"token{self.asked}", "expires_in": 100}


def test_a_token_is_renewed_before_it_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint(monkeypatch)
    source = TokenSource(TokenSettings(url="https://h/token"))
    for now_s, expected in ((1000, "token1"), (1079, "token1"), (1080, "token2"), (1085, "token2")):
        endpoint.now_s = now_s
        assert source.current() == expected
    endpoint.down = True
    endpoint.now_s = 1179
    assert source.current() == "token2"
    endpoint.now_s = 1180
    with pytest.raises(Refused, match="it is down"):
        source.current()
    endpoint.down = False
    assert source.current() == f"token{endpoint.asked}"


def test_the_answers_of_an_endpoint() -> None:
    assert lifetime_of({"access_token": " a.b.c ", "expires_in": 10}, 0).token == "a.b.c"
    issued = lifetime_of({"id_token": "a", "expires_in": 10}, 5)
    assert (issued.token, issued.renew_s, issued.end_s) == ("a", 13.0, 15.0)
    claims = base64.urlsafe_b64encode(json.dumps({"exp": time.time() + 50}).encode()).decode()
    stated = lifetime_of({"access_token": f"x.{claims.rstrip('=')}.y"}, 0)
    assert 49 < stated.end_s < 50.5
    for unknown in ("a", "a.b.c", "a.W10.c", "a.e30.c", "a.bnVsbA.c"):
        assert lifetime_of({"access_token": unknown, "expires_in": True}, 5).end_s == 5
    for bad in ({}, {"access_token": 7}, {"access_token": "a b"}, {"access_token": "\n"}):
        with pytest.raises(Refused, match="has no access_token"):
            lifetime_of(bad, 0)


def test_the_client_in_the_authorization() -> None:
    settings = TokenSettings(url="", client_id="a b", client_secret="c/ä")
    assert base64.b64decode(basic(settings)).decode() == "a b:c/ä"
    encoded = TokenSettings(url="", client_id="a b", client_secret="c/ä", encodes=True)
    assert base64.b64decode(basic(encoded)).decode() == "a+b:c%2F%C3%A4"


@pytest.mark.parametrize("ends", [True, False])
def test_a_refused_token_ends_the_login(tmp_path: Path, ends: bool) -> None:
    file = tmp_path / "token"
    file.write_text("a.b.c")
    steps = login_steps(login({URL: f"file://{file}"}), "h:1")
    next(steps)
    first: Any = steps.send(SaslHandshakeResponse(error_code=0, mechanisms=("OAUTHBEARER",)))
    assert bytes(first.auth_bytes) == b"n,,\x01auth=Bearer a.b.c\x01\x01"
    second: Any = steps.send(SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}'))
    assert bytes(second.auth_bytes) == b"\x01"
    text = '{"status":"invalid_token"}' if ends else None
    with pytest.raises(Refused, match="invalid_token" if ends else "neither accepts nor refuses"):
        steps.send(SaslAuthenticateResponse(error_code=58 if ends else 0, error_message=text))
