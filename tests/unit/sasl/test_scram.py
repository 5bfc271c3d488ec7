"""SCRAM: the vector of RFC 7677, wrong messages, and equal answers for known and unknown users."""

from __future__ import annotations

import base64
from random import Random

import pytest

from quorate.quorum.metadata.image import ScramCredential
from quorate.quorum.sasl.exchange import AuthenticationFailed
from quorate.quorum.sasl.mechanisms import Mechanisms
from quorate.quorum.sasl.random_text import random_text, text_of
from quorate.quorum.sasl.scram_client import ScramClient, ServerRefused
from quorate.quorum.sasl.scram_mechanisms import BY_NAME, SHA_256, SHA_512, ScramMechanism, keys_of
from quorate.quorum.sasl.scram_messages import MAX_BYTES
from quorate.quorum.sasl.scram_server import ScramExchange
from quorate.quorum.sasl.unknown_users import UnknownUsers

CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def credential(
    mechanism: ScramMechanism, password: str, salt: bytes = SALT, iterations: int = 4096
) -> ScramCredential:
    keys = keys_of(mechanism, mechanism.salted_password(password, salt, iterations))
    return ScramCredential(
        salt=salt, stored_key=keys.stored_key, server_key=keys.server_key, iterations=iterations
    )


PENCIL = credential(SHA_256, "pencil")


def exchange(known: bool = True) -> ScramExchange:
    return ScramExchange(SHA_256, lambda user: (PENCIL, known), SERVER_NONCE)


def client(password: str = "pencil") -> ScramClient:
    return ScramClient(SHA_256, "user", password, CLIENT_NONCE)


def user_of(server: ScramExchange) -> str | None:
    return server.user


def test_the_vector_of_rfc_7677() -> None:
    server = exchange()
    first = server.respond(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert client().first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    ours = client()
    assert ours.final(first) == final
    assert user_of(server) is None
    answer = server.respond(final)
    assert answer == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert user_of(server) == "user"
    ours.check(answer)
    with pytest.raises(ServerRefused):
        ours.check(b"v=AAAA")


def finals(server: ScramExchange, password: str = "pencil") -> bytes:
    ours = client(password)
    return ours.final(server.respond(ours.first()))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"c=biws", b"c=eSws", "channel binding"),
        (b"$k0,", b"$k1,", "nonce"),
        (b"rOpr", b"sOpr", "nonce"),
        (b"p=dHzb", b"p=dHzc", "password"),
        (b"p=dHzb", b"p=", "length"),
        (b",p=", b",q=", "malformed"),
        (b"VQ=", b"VQ", "base 64"),
    ],
)
def test_a_changed_final_message_fails(old: bytes, new: bytes, reason: str) -> None:
    server = exchange()
    final = finals(server)
    assert old in final
    with pytest.raises(AuthenticationFailed, match=reason) as failure:
        server.respond(final.replace(old, new))
    assert failure.value.message is None, "the client gets one text for all causes"
    assert server.user is None
    with pytest.raises(AuthenticationFailed, match="after the last one"):
        server.respond(final)


def test_a_message_cannot_be_replayed() -> None:
    server = exchange()
    final = finals(server)
    server.respond(final)
    with pytest.raises(AuthenticationFailed):
        server.respond(final)
    other = ScramExchange(SHA_256, lambda user: (PENCIL, True), "another")
    other.respond(client().first())
    with pytest.raises(AuthenticationFailed, match="nonce"):
        other.respond(final)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n=user,r=x",
        b"y,,n=user,r=x",
        b"p=tls-unique,,n=user,r=x",
        b"n,,n=,r=x",
        b"n,,n=us=er,r=x",
        b"n,,n=user,r=",
        b"n,,n=\xc3\xa9,r=x",
        b"n,,n=user,r=a\xffb",
        b"n,,n=user",
    ],
)
def test_a_malformed_first_message_fails(first: bytes) -> None:
    server = exchange()
    with pytest.raises(AuthenticationFailed):
        server.respond(first)
    with pytest.raises(AuthenticationFailed, match="after the last one"):
        server.respond(client().first())


def test_a_message_is_bounded() -> None:
    """The longest name is accepted in its longest form, and a larger message is not looked at."""
    longest = b"n,,n=" + 1024 * b"=3D" + b",r=x"
    assert exchange().respond(longest).startswith(b"r=x")
    larger = b"n,,n=" + MAX_BYTES * b"a" + b",r=x"
    with pytest.raises(AuthenticationFailed, match="has more than 16384 bytes"):
        exchange().respond(larger)


def test_an_authorization_id_must_be_the_user() -> None:
    assert exchange().respond(b"n,a=user,n=user,r=x,foo=bar").startswith(b"r=x")
    with pytest.raises(AuthenticationFailed, match="different from username"):
        exchange().respond(b"n,a=admin,n=user,r=x")


def test_names_are_unescaped() -> None:
    asked: list[str] = []

    def find(user: str) -> tuple[ScramCredential, bool]:
        asked.append(user)
        return PENCIL, True

    ScramExchange(SHA_256, find, "n").respond(ScramClient(SHA_256, "a,b=c", "pencil", "x").first())
    assert asked == ["a,b=c"]


def test_a_delegation_token_is_no_user() -> None:
    server = exchange()
    ours = client()
    first = server.respond(ours.first() + b",tokenauth=true")
    ours._bare += ",tokenauth=true"
    with pytest.raises(AuthenticationFailed, match="unknown"):
        server.respond(ours.final(first))


# --- unknown users


class Users:
    """Mechanisms with one user, alice, whose password is `secret`."""

    def __init__(self, seed: int = 1, secret: str | None = "s" * 32) -> None:
        random = Random(seed)
        self.unknown = UnknownUsers(random)
        self.unknown.configure(secret)
        salt = random_text(random).encode()
        stored = {
            ("alice", each.number): credential(each, "secret", salt) for each in BY_NAME.values()
        }
        self.mechanisms = Mechanisms(
            ("SCRAM-SHA-256", "SCRAM-SHA-512"),
            plain_users={},
            credentials=lambda: stored,
            unknown_users=self.unknown,
            random=random,
        )

    def attempt(self, mechanism: str, user: str, password: str) -> tuple[list[int], str | None]:
        """Return the sizes of the answers, and the reason of a failure."""
        exchange = self.mechanisms.begin(mechanism)
        ours = ScramClient(BY_NAME[mechanism], user, password, "c" * 26)
        first = exchange.respond(ours.first())
        try:
            last = exchange.respond(ours.final(first))
        except AuthenticationFailed as failure:
            assert failure.message is None
            return [len(first)], failure.reason
        ours.check(last)
        assert exchange.user == user
        return [len(first), len(last)], None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_known_and_unknown_users_get_the_same_answers(mechanism: str) -> None:
    users = Users()
    assert users.attempt(mechanism, "alice", "secret")[1] is None
    wrong, reason = users.attempt(mechanism, "alice", "wrong")
    assert reason == "the password is wrong"
    for name in ("bob", "carol", "mallory"):
        sizes, reason = users.attempt(mechanism, name, "secret")
        assert reason == "the user is unknown"
        assert len(sizes) == len(wrong)
        assert abs(sizes[0] - wrong[0]) <= 4, "the lengths of random texts differ by a digit"


def test_the_salt_of_an_unknown_user_is_that_of_the_cluster() -> None:
    one, other = Users(1).unknown, Users(2).unknown
    salts = {name: one.credential(SHA_256, name).salt for name in ("bob", "carol")}
    assert salts["bob"] != salts["carol"]
    assert all(other.credential(SHA_256, name).salt == salt for name, salt in salts.items())
    assert one.credential(SHA_512, "bob").salt != salts["bob"]
    assert all(set(salt) <= set(b"0123456789abcdefghijklmnopqrstuvwxyz") for salt in salts.values())
    other.configure("t" * 32)
    assert other.credential(SHA_256, "bob").salt != salts["bob"]
    other.configure(None)
    assert (
        other.credential(SHA_256, "bob").salt
        != Users(3, None).unknown.credential(SHA_256, "bob").salt
    ), "without the secret of the cluster, each broker has its own"


def test_the_client_refuses_a_weak_server() -> None:
    for first in (b"r=x,s=YQ==,i=4096", b"r=rOprNGfwEbeRWgbNEkqO,s=YQ==,i=4096", b"nonsense"):
        with pytest.raises(ServerRefused):
            client().final(first)
    for iterations in (1, 4095, 1_000_001):
        with pytest.raises(ServerRefused, match="iterations"):
            client().final(b"r=rOprNGfwEbeRWgbNEkqOx,s=YQ==,i=%d" % iterations)


def test_texts_of_130_bits() -> None:
    assert text_of(0) == "0"
    assert text_of(35) == "z"
    assert text_of(36) == "10"
    assert text_of(1 << 130) == "0"
    assert int(text_of((1 << 130) - 1), 36) == (1 << 130) - 1
