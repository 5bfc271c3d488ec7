"""Bearer tokens: the signature, the choice of a key, and the claims."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given, settings
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm

from quorate.quorum.sasl.bearer_token import BearerToken, TokenRefused, UnknownKey
from quorate.quorum.sasl.key_set import (
    ALGORITHMS,
    MAX_JWKS_BYTES,
    MAX_KEYS,
    KeySet,
    KeySetRefused,
    parse_key_set,
)
from quorate.quorum.sasl.token_claims import MAX_USER_BYTES, ClaimRules, bearer_token
from quorate.quorum.sasl.token_signature import verified_claims
from tests.tokens import AUDIENCE, ISSUER, TokenProvider, jwk, part, private_key, signed

NOW_MS = 1_800_000_000_000
NOW_S = NOW_MS // 1000
RULES = ClaimRules(audiences=("other", AUDIENCE), issuer=ISSUER)
PROVIDER = TokenProvider()
KEYS = parse_key_set(PROVIDER.jwks())
CLAIMS = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "iat": NOW_S, "exp": NOW_S + 60}


def verify(token: str, keys: KeySet = KEYS, rules: ClaimRules = RULES) -> BearerToken:
    return bearer_token(verified_claims(token, keys), rules, NOW_MS)


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_a_token_of_each_algorithm_proves_its_user(algorithm: str) -> None:
    provider = TokenProvider({"k1": (algorithm, 0)})
    keys = parse_key_set(provider.jwks())
    assert verify(provider.token(NOW_MS), keys) == ("alice", NOW_MS + 60_000)
    other = TokenProvider({"k1": (algorithm, 1)}).token(NOW_MS)
    with pytest.raises(TokenRefused, match="the signature of the token is not valid"):
        verify(other, keys)


def forged(algorithm: Any, key: bytes = b"") -> str:
    """Return a token without a signature, or one that is signed with a symmetric key."""
    header = {"alg": algorithm, "kid": "k1"}
    if key:
        text = f"{part(header)}.{part(CLAIMS)}"
        digest = hmac.digest(key, text.encode(), hashlib.sha256)
        return f"{text}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
    return f"{part(header)}.{part(CLAIMS)}.c2ln"


PUBLIC_PEM = (
    private_key("ES256")
    .public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
)


@pytest.mark.parametrize(
    "token",
    [
        forged("none"),
        forged("None"),
        forged("HS256", PUBLIC_PEM),
        forged(None),
        forged(7),
        forged(["ES256"]),
        forged("ES256"),
        forged("RS256"),
        forged("none").rsplit(".", 1)[0] + ".",
        PROVIDER.token(NOW_MS)[:-3],
        PROVIDER.token(NOW_MS).rsplit(".", 1)[0],
        PROVIDER.token(NOW_MS) + ".more",
        PROVIDER.token(NOW_MS, header={"crit": ["b64"], "b64": True}),
        "",
        "...",
        "a.b.c",
        f"{part(1)}.{part(CLAIMS)}.c2ln",
        f"{part({'alg': 'ES256', 'kid': 7})}.{part(CLAIMS)}.c2ln",
        base64.urlsafe_b64encode(b"[" * 6000).decode() + ".x.y",
        part({"alg": "ES256", "x": "y" * 9000}) + ".x.y",
        signed([CLAIMS], private_key("ES256"), "ES256", {"kid": "k1"}),
        signed("alice", private_key("ES256"), "ES256", {"kid": "k1"}),
    ],
)
def test_forged_and_malformed_tokens_are_refused(token: str) -> None:
    with pytest.raises(TokenRefused) as raised:
        verify(token)
    assert len(raised.value.reason) < 200
    assert not token or len(token) < 10 or token not in raised.value.reason


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"zip": "DEF"}, "the header of the token is not supported"),
        ({"enc": "A256GCM"}, "the header of the token is not supported"),
        ({"x": "y" * 9000}, "the token is no signed JSON Web Token"),
    ],
)
def test_a_header_that_is_not_understood(header: dict[str, Any], reason: str) -> None:
    """The signature of these tokens is valid."""
    with pytest.raises(TokenRefused, match=reason):
        verify(PROVIDER.token(NOW_MS, header=header))


def test_the_algorithm_is_checked_before_the_keys() -> None:
    """Nothing but the list of algorithms keeps a key from being used in another way."""
    for algorithm in ("none", "HS256", "RS1"):
        with pytest.raises(TokenRefused, match=f"the algorithm '{algorithm}' of the token is not"):
            verify(forged(algorithm, PUBLIC_PEM))


def test_a_public_key_is_no_symmetric_key() -> None:
    entry = jwk("k1", "ES256", private_key("ES256")) | {"alg": "HS256"}
    symmetric = {"kty": "oct", "kid": "k1", "k": base64.urlsafe_b64encode(PUBLIC_PEM).decode()}
    for key in (entry, symmetric):
        with pytest.raises(KeySetRefused, match="none of its 1 keys can verify"):
            parse_key_set(json.dumps({"keys": [key]}).encode())


def test_a_key_in_the_header_is_never_used() -> None:
    stranger = private_key("ES256", 5)
    own = jwk("k2", "ES256", stranger)
    for header in ({"kid": "k1", "jwk": own}, {"kid": "k1", "jku": "https://x/keys", "x5u": "y"}):
        with pytest.raises(TokenRefused, match="the signature of the token is not valid"):
            verify(signed(CLAIMS, stranger, "ES256", header))


def test_the_token_names_its_key() -> None:
    provider = TokenProvider({"k1": ("ES256", 0), "k2": ("ES256", 1), "k3": ("RS256", 0)})
    keys = parse_key_set(provider.jwks())
    for key_id in provider.keys:
        assert verify(provider.token(NOW_MS, key_id=key_id), keys).user == "alice"
    with pytest.raises(UnknownKey, match="0 keys have the id 'k4' and are for ES256"):
        verify(provider.token(NOW_MS, header={"kid": "k4"}), keys)
    with pytest.raises(UnknownKey, match="0 keys have the id 'k3' and are for ES256"):
        verify(provider.token(NOW_MS, header={"kid": "k3"}), keys)
    with pytest.raises(UnknownKey, match="names no key, and 2 keys are for ES256"):
        verify(provider.token(NOW_MS, header={"kid": None}), keys)
    only = provider.token(NOW_MS, key_id="k3", header={"kid": None})
    assert verify(only, keys).user == "alice"
    with pytest.raises(UnknownKey):
        verify(only, KeySet())


def key_set(*entries: Any) -> KeySet:
    return parse_key_set(json.dumps({"keys": entries}).encode())


def test_only_public_keys_for_signatures_are_used() -> None:
    good = jwk("good", "RS256", private_key("RS256"))
    weak = jwk("weak", "RS256", rsa.generate_private_key(65537, 1024))
    others = [
        {**good, "use": "enc"},
        {**good, "key_ops": ["sign"]},
        {**good, "key_ops": 7},
        {**good, "kty": ["RSA"]},
        {**good, "kid": 7},
        {**good, "n": "!"},
        {**good, "e": None},
        {"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"},
        {"kty": "OKP", "crv": "X25519", "x": "AA"},
        {},
        "text",
        None,
        weak,
    ]
    assert [each.id for each in key_set(*others, good).keys] == ["good"]
    (fixed,) = key_set({**good, "alg": "PS384"}).keys
    assert fixed.algorithms == {"PS384"}
    private = json.loads(RSAAlgorithm.to_jwk(private_key("RS256")))
    del private["key_ops"]
    assert "d" in private
    (public,) = key_set(private).keys
    assert isinstance(public.key, rsa.RSAPublicKey)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"keys": 7}',
        b'{"keys": []}',
        b"[" * 100_000,
        b"\xff",
        b" " * MAX_JWKS_BYTES + b"{}",
        b"7" * 10_000,
    ],
)
def test_what_is_no_key_set(text: bytes) -> None:
    with pytest.raises(KeySetRefused):
        parse_key_set(text)


def test_the_number_of_keys_is_bounded() -> None:
    entry = jwk(None, "EdDSA", private_key("EdDSA"))
    assert len(key_set(*[entry] * (MAX_KEYS + 5)).keys) == MAX_KEYS


REFUSED_CLAIMS: list[tuple[dict[str, Any], str]] = [
    ({"sub": None}, "the token has no claim 'sub'"),
    ({"sub": " "}, "the token has no claim 'sub'"),
    ({"sub": 7}, "the token has no claim 'sub'"),
    ({"sub": "\ud800"}, "not UTF-8"),
    ({"sub": "x" * (MAX_USER_BYTES + 1)}, "has 1025 bytes, at most 1024"),
    ({"exp": None}, "the claim exp of the token is no time"),
    ({"exp": "soon"}, "the claim exp of the token is no time"),
    ({"exp": True}, "the claim exp of the token is no time"),
    ({"exp": -1}, "the claim exp of the token is no time"),
    ({"exp": 1e300}, "the claim exp of the token is no time"),
    ({"exp": float("nan")}, "the claim exp of the token is no time"),
    ({"exp": 10**40}, "the claim exp of the token is no time"),
    ({"exp": NOW_S - 30, "iat": NOW_S - 99}, "the token has expired"),
    ({"exp": NOW_S + 5, "iat": NOW_S + 6}, "the token expires before it begins"),
    ({"exp": NOW_S + 5, "nbf": NOW_S + 6}, "the token expires before it begins"),
    ({"iat": None}, "the claim iat of the token is no time"),
    ({"iat": NOW_S + 31}, "the token was issued in the future"),
    ({"nbf": NOW_S + 31}, "the token is not valid yet"),
    ({"nbf": "now"}, "the claim nbf of the token is no time"),
    ({"iss": "https://other"}, "the token is of another issuer"),
    ({"iss": None}, "the token is of another issuer"),
    ({"iss": [ISSUER]}, "the token is of another issuer"),
    ({"aud": None}, "the token is for another audience"),
    ({"aud": "kafk"}, "the token is for another audience"),
    ({"aud": ["a", "b"]}, "the token is for another audience"),
    ({"aud": {AUDIENCE: 1}}, "the token is for another audience"),
    ({"scope": ""}, "the scopes of the token are malformed"),
    ({"scope": ["a", "a"]}, "the scopes of the token are malformed"),
    ({"scope": ["a", 7]}, "the scopes of the token are malformed"),
]


@pytest.mark.parametrize(("change", "reason"), REFUSED_CLAIMS, ids=str)
def test_claims_that_prove_nothing(change: dict[str, Any], reason: str) -> None:
    claims = {name: each for name, each in {**CLAIMS, **change}.items() if each is not None}
    with pytest.raises(TokenRefused, match=reason):
        bearer_token(claims, RULES, NOW_MS)


@pytest.mark.parametrize(
    "change",
    [
        {"exp": NOW_S - 29.9, "iat": NOW_S - 99},
        {"iat": NOW_S + 30},
        {"nbf": NOW_S + 30},
        {"aud": ["x", AUDIENCE]},
        {"aud": "other"},
        {"scope": "a b"},
        {"scope": ["a", "b"]},
        {"scope": 7},
        {"sub": "x" * MAX_USER_BYTES},
    ],
    ids=str,
)
def test_claims_that_are_accepted(change: dict[str, Any]) -> None:
    assert bearer_token({**CLAIMS, **change}, RULES, NOW_MS).user


def test_the_rules_are_those_of_the_listener() -> None:
    claims = {**CLAIMS, "upn": "bob", "roles": ["a", "a"]}
    free = ClaimRules(user_claim="upn", clock_skew_ms=0)
    without = {name: each for name, each in claims.items() if name != "aud"}
    assert bearer_token(without, free, NOW_MS).user == "bob"
    with pytest.raises(TokenRefused, match="another audience"):
        bearer_token(claims, free, NOW_MS)
    with pytest.raises(TokenRefused, match="expired"):
        bearer_token({**without, "exp": NOW_S}, free, NOW_MS)
    with pytest.raises(TokenRefused, match="scopes"):
        bearer_token(without, ClaimRules(scope_claim="roles"), NOW_MS)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each),
    max_leaves=6,
)


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from([*CLAIMS, "nbf", "scope"]), json_values))
def test_any_claims_are_accepted_or_refused(change: dict[str, Any]) -> None:
    try:
        found = bearer_token({**CLAIMS, **change}, RULES, NOW_MS)
    except TokenRefused:
        return
    assert found.user == {**CLAIMS, **change}["sub"]
    assert found.expires_wall_ms > NOW_MS - RULES.clock_skew_ms


@settings(max_examples=100)
@given(st.text(max_size=40) | st.binary(max_size=40).map(lambda each: part(each.hex()) + ".a.b"))
def test_any_text_is_refused_as_a_token(text: str) -> None:
    with pytest.raises(TokenRefused):
        verify(text)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(["alg", "kid", "typ", "jku", "crit"]), json_values))
def test_any_header_is_refused_with_a_wrong_signature(header: dict[str, Any]) -> None:
    with pytest.raises(TokenRefused):
        verify(f"{part(header)}.{part(CLAIMS)}.c2ln")


@settings(max_examples=60)
@given(json_values)
def test_any_json_is_a_key_set_or_refused(value: Any) -> None:
    for found in (value, {"keys": value}, {"keys": [value]}):
        with pytest.raises(KeySetRefused):
            parse_key_set(json.dumps(found).encode())
