"""Certificates that change while a listener is open. A bad one leaves the old one in use."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.config.key import ConfigError
from quorate.config.listeners import SSL, Listener, Listeners
from quorate.quorum.clock import AsyncioClock
from quorate.quorum.node.peers import node_tls
from quorate.quorum.node.peers.node_tls import NodeTls, require_uri
from quorate.quorum.rpc.node_identity import node_uri
from quorate.quorum.rpc.tls import listener_tls
from quorate.quorum.rpc.tls.identity import IdentityRefused
from quorate.quorum.rpc.tls.issuing import Issued
from quorate.quorum.rpc.tls.listener_tls import ListenerTls
from quorate.quorum.rpc.tls.loaded import load, shown_certificate
from quorate.quorum.rpc.tls.settings import TlsSettings
from quorate.quorum.seams import ANONYMOUS_PEER, Address
from quorate.quorum.watch.tls import tls_metrics
from tests.certificates import authority, certificate
from tests.unit.rpc.tls.test_settings import loaded
from tests.unit.rpc.tls.test_stores import with_keystore
from tests.unit.rpc.tls.test_tls_protocol import node, settings_of

pytestmark = pytest.mark.timeout(20)


class Store:
    """A keystore whose content changes."""

    def __init__(self, tmp: Path) -> None:
        self.path = tmp / "keystore.pem"
        self._time_ns = 1_000_000_000
        self.put(node().keystore_pem)

    def put(self, content: bytes) -> None:
        """Replace the file, as a renewal does. Each file has another time."""
        fresh = self.path.with_suffix(".new")
        fresh.write_bytes(content)
        self._time_ns += 1_000_000_000
        os.utime(fresh, ns=(self._time_ns, self._time_ns))
        fresh.rename(self.path)

    def tls(self, **changes: bool) -> ListenerTls:
        settings = with_keystore(location=str(self.path))
        return ListenerTls("SECURE", replace(settings, **changes), AsyncioClock())  # type: ignore[arg-type]


def shown(tls: ListenerTls) -> bytes:
    return shown_certificate(tls._loaded.context)


def der(issued: Issued) -> bytes:
    return ssl.PEM_cert_to_DER_cert(issued.certificate_pem.decode())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


async def test_a_renewed_certificate_is_used_when_its_file_changes(store: Store) -> None:
    tls = store.tls()
    old_context = tls._loaded.context
    await tls.reload()
    assert (tls._loaded.context, tls.reloads) == (old_context, 0)
    renewed = certificate("CN=node")
    store.put(renewed.keystore_pem)
    await tls.reload()
    assert shown(tls) == der(renewed)
    assert shown_certificate(old_context) == der(node()), "open connections keep their context"
    assert (tls.reloads, tls.failed_reloads) == (1, 0)
    assert tls.not_after_ms == renewed.certificate.not_valid_after_utc.timestamp() * 1000


async def test_a_request_reads_the_file_again_also_if_it_seems_unchanged(store: Store) -> None:
    tls = store.tls()
    await tls.reload(also_unchanged=True)
    assert tls.reloads == 1


BAD: dict[str, Callable[[], bytes]] = {
    "cut off": lambda: node().keystore_pem[:-100],
    "empty": lambda: b"",
    "another key": lambda: certificate("CN=node").key_pem + node().certificate_pem,
    "expired": lambda: certificate("CN=node", expired=True).keystore_pem,
    "another subject": lambda: certificate("CN=other").keystore_pem,
    "fewer names": lambda: certificate("CN=node", hosts=["localhost"]).keystore_pem,
}


@pytest.mark.parametrize("kind", BAD)
async def test_a_bad_certificate_leaves_the_old_one_in_use(
    store: Store, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    tls = store.tls()
    store.put(BAD[kind]())
    for _ in range(2):  # one attempt for each change
        await tls.reload()
    assert shown(tls) == der(node())
    assert (tls.reloads, tls.failed_reloads) == (0, 1)
    (line,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert "listener SECURE keeps its certificate" in line.getMessage()
    renewed = certificate("CN=node")
    store.put(renewed.keystore_pem)
    await tls.reload()
    assert shown(tls) == der(renewed)


@pytest.mark.parametrize(
    ("key", "kind"), [("allow_dn_changes", "another subject"), ("allow_san_changes", "fewer names")]
)
async def test_keys_allow_another_subject_and_fewer_names(
    store: Store, key: str, kind: str
) -> None:
    tls = store.tls(**{key: True})
    store.put(BAD[kind]())
    await tls.reload()
    assert (tls.reloads, tls.failed_reloads) == (1, 0)


async def test_an_error_that_no_code_expects_does_not_stop_the_node(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(settings: TlsSettings) -> None:
        raise RuntimeError("a surprise of a library")

    tls = store.tls()
    monkeypatch.setattr(listener_tls, "load", fail)
    await tls.reload(also_unchanged=True)
    assert (shown(tls), tls.failed_reloads) == (der(node()), 1)


async def test_a_missing_file_leaves_the_old_certificate_in_use(store: Store) -> None:
    tls = store.tls()
    store.path.unlink()
    await tls.reload()
    assert (shown(tls), tls.failed_reloads) == (der(node()), 1)


async def test_an_expired_certificate_at_the_start_is_an_error_in_the_log(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    store.put(certificate("CN=node", expired=True).keystore_pem)
    store.tls()
    assert "the certificate of listener SECURE has expired" in caplog.messages


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_the_handshake_in_memory_also_works_if_clients_need_certificates(version: str) -> None:
    found = load(settings_of("required", (version,)))
    assert found.context.verify_mode is ssl.CERT_REQUIRED
    assert found.subject == "CN=node"
    assert len(found.names) == 2


def tls_of(store: Store, monkeypatch: pytest.MonkeyPatch) -> NodeTls:
    config = loaded(keystore_type="PEM", keystore_location=str(store.path))
    listeners = Listeners(client=(Listener("OUT", "", 1),), protocols={"OUT": SSL})
    config = replace(config, listeners=listeners)
    monkeypatch.setattr(TlsSettings, "of", lambda value: with_keystore(location=str(store.path)))
    return NodeTls(config, "cluster", AsyncioClock())


NODE, OTHER_NODE = node_uri("c", 4), node_uri("c", 5)


@pytest.mark.parametrize(
    ("uris", "reloads"),
    [((NODE, "spiffe://b"), 1), ((OTHER_NODE,), 0), ((NODE, OTHER_NODE), 0), ((), 0)],
)
async def test_a_node_stays_the_node_of_its_certificate(
    store: Store, uris: tuple[str, ...], reloads: int
) -> None:
    """Other URIs may change."""
    store.put(certificate("CN=node", uris=(NODE, "spiffe://a")).keystore_pem)
    settings = replace(
        with_keystore(location=str(store.path)), allow_san_changes=True, client_auth="requested"
    )
    settings = replace(settings, truststore=settings_of("requested").truststore)
    tls = ListenerTls("NODES", settings, AsyncioClock(), for_nodes=True)
    store.put(certificate("CN=node", uris=uris).keystore_pem)
    await tls.reload()
    assert tls.reloads == reloads


async def test_nodes_change_their_authority_in_three_steps(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each shortcut would cut this node off from the others, so it is refused (as in Kafka)."""
    old, new = authority(), authority("new")
    by_old, by_new = (certificate("CN=node", by=each, uris=(NODE,)) for each in (old, new))
    trust = tmp_path / "trust.pem"
    trust.write_bytes(old.certificate_pem)
    store.put(by_old.keystore_pem)
    settings = with_keystore(location=str(store.path))
    truststore = replace(settings.truststore, location=str(trust), pem=None)
    settings = replace(settings, truststore=truststore, client_auth="requested")
    tls = ListenerTls("NODES", settings, AsyncioClock(), for_nodes=True)
    for issued, trusted, reloads in (
        (by_old, (new,), 0),
        (by_new, (old,), 0),
        (by_new, (new,), 0),
        (by_old, (old, new), 1),
        (by_new, (old, new), 2),
        (by_new, (new,), 3),
    ):
        store.put(issued.keystore_pem)
        trust.write_bytes(b"".join(each.certificate_pem for each in trusted))
        await tls.reload(also_unchanged=True)
        assert tls.reloads == reloads
    assert caplog.text.count("do not trust each other") == tls.failed_reloads == 3


async def test_a_dynamic_config_does_not_cut_a_node_off_at_its_restart(
    store: Store, tmp_path: Path
) -> None:
    """It begins with the stores of its file, which the other nodes must still trust."""
    old, new = authority(), authority("new")
    by_old, by_new = (certificate("CN=node", by=each, uris=(NODE,)) for each in (old, new))
    store.put(by_old.keystore_pem)
    trust, fresh = tmp_path / "trust.pem", tmp_path / "fresh.pem"
    trust.write_bytes(old.certificate_pem)
    fresh.write_bytes(by_new.keystore_pem)
    file = with_keystore(location=str(store.path))
    truststore = replace(file.truststore, location=str(trust), pem=None)
    file = replace(file, truststore=truststore, client_auth="requested")
    tls = ListenerTls("NODES", file, AsyncioClock(), for_nodes=True)
    both = (old.certificate_pem + new.certificate_pem).decode()
    first = replace(file, truststore=replace(truststore, location=None, pem=both))
    second = replace(first, keystore=replace(file.keystore, location=str(fresh)))
    tls.check(first)
    tls.configure(first)
    await tls.reload()
    with pytest.raises(ConfigError, match="could not connect to the others after a restart"):
        tls.check(second)
    trust.write_text(both)
    tls.check(second)
    tls.configure(second)
    await tls.reload()
    assert (tls.reloads, tls.failed_reloads) == (2, 0)
    tls.check(file)


@pytest.mark.parametrize(
    ("uris", "reason"), [((OTHER_NODE,), "lacks the URI"), ((NODE, OTHER_NODE), "is for 2 nodes")]
)
async def test_a_node_needs_a_certificate_that_others_believe(
    store: Store, uris: tuple[str, ...], reason: str
) -> None:
    store.put(certificate("CN=node", uris=uris).keystore_pem)
    with pytest.raises(ConfigError, match=reason):
        require_uri(store.tls(), NODE)
    store.put(certificate("CN=node", uris=(NODE, "spiffe://a")).keystore_pem)
    require_uri(store.tls(), NODE)


async def test_a_peer_whose_subject_no_rule_accepts_makes_a_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    def refuse(session: object, rules: object) -> None:
        raise IdentityRefused("no rule gives a name")

    monkeypatch.setattr(listener_tls, "identity_of", refuse)
    tls = store.tls()
    for _ in range(5):
        assert tls.dialed_identity(asyncio.Transport({"peername": ("10.0.0.1", 1)})) == (
            ANONYMOUS_PEER
        )
    (line,) = caplog.messages
    assert "10.0.0.1" in line and "no rule gives a name" in line


@pytest.mark.parametrize("how", ["the file changes", "a signal"])
async def test_a_node_notices_changes_and_signals(
    store: Store, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(node_tls, "CHECK_INTERVAL_S", 0.01 if how == "the file changes" else 60)
    node_of = tls_of(store, monkeypatch)
    listener = node_of.of("OUT")
    assert listener is not None and node_of
    node_of.start()
    renewed = certificate("CN=node")
    store.put(renewed.keystore_pem)
    if how == "a signal":
        node_of.reload()
    async with asyncio.timeout(5):
        while not listener.reloads:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert shown(listener) == der(renewed)
    node_of.close()


async def test_different_refusals_of_certificates_have_lines_of_their_own(
    caplog: pytest.LogCaptureFixture, store: Store
) -> None:
    tls = store.tls()
    for text in ("certificate has expired", "self-signed certificate") * 3:
        error = ssl.SSLCertVerificationError()
        error.verify_message = text
        tls.failed(Address("10.0.0.1", 1), "CERTIFICATE_VERIFY_FAILED", error)
    assert [line.rpartition(": ")[2] for line in caplog.messages] == [
        "certificate has expired",
        "self-signed certificate",
    ]
    assert tls.failures == {"CERTIFICATE_VERIFY_FAILED": 6}


async def test_the_metrics_of_certificates(store: Store) -> None:
    tls = store.tls()
    store.put(b"")
    await tls.reload()
    values = {each.name: each.samples[0].value for each in tls_metrics([tls]) if each.samples}
    assert values["quorate_tls_certificate_expiry_seconds"] == tls.not_after_ms / 1000
    assert values["quorate_tls_failed_reloads"] == 1
    assert values["quorate_tls_reloads"] == 0
