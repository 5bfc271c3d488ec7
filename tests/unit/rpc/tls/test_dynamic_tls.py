"""Dynamic configs of TLS on one node: trials of a change, its use, and the way back to the file."""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from quorate.broker.kafka.admin.tls_changes import tls_change
from quorate.config.dynamic_keys import settings_with
from quorate.config.dynamic_tls_keys import DYNAMIC_TLS_KEYS, dynamic_tls_key, listeners_of
from quorate.config.key import ConfigError, Update
from quorate.config.loader import load
from quorate.config.node_config import NodeConfig
from quorate.config.sensitive import is_secret
from quorate.quorum.clock import AsyncioClock
from quorate.quorum.ids import EpochOffset
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import ConfigRecord
from quorate.quorum.metadata.replay import replay
from quorate.quorum.node.peers import node_tls, tls_trials
from quorate.quorum.node.peers.node_tls import NodeTls
from quorate.quorum.rpc.tls.issuing import Issued
from quorate.quorum.rpc.tls.loaded import shown_certificate
from tests.certificates import authority, certificate

pytestmark = pytest.mark.timeout(20)
BROKER = 4
PREFIX = "listener.name.out."
LOCATION = PREFIX + "ssl.keystore.location"


def config_of(keystore: Path) -> NodeConfig:
    """Return the configuration of broker 4, whose listener OUT has TLS."""
    texts = {
        "process.roles": "broker",
        "node.id": str(BROKER),
        "controller.quorum.voters": "9@localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": "OUT://localhost:9092,IN://localhost:9094",
        "listener.security.protocol.map": "OUT:SSL,IN:PLAINTEXT,CONTROLLER:PLAINTEXT,OTHER:SSL",
        "log.dirs": str(keystore.parent),
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
        "ssl.keystore.location": str(keystore),
    }
    return load(None, environment={}, overrides=texts, hostname="here")


class Node:
    """The TLS of a node, and the certificates in its file and for its changes."""

    def __init__(self, tmp: Path) -> None:
        self.tmp = tmp
        self.first = certificate("CN=node")
        self.config = config_of(self.file("first", self.first.keystore_pem))
        self.tls = NodeTls(self.config, "cluster", AsyncioClock())
        self.tls.start()

    def file(self, name: str, content: bytes) -> Path:
        path = self.tmp / f"{name}.pem"
        path.write_bytes(content)
        return path

    def settings(self, texts: Mapping[str, str]) -> dict[str, Any]:
        settings, ignored = settings_with(self.config, {}, texts)
        assert not ignored
        return settings

    async def tried(self, texts: Mapping[str, str]) -> str | None:
        """Return the reason against a change, or None."""
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.tls.try_out(self.settings(texts), texts, answer.set_result)
        return await answer

    async def configured(self, texts: Mapping[str, str]) -> bytes:
        """Configure the node, and return the certificate that it shows afterwards."""
        self.tls.configure(self.settings(texts))
        settled = asyncio.Event()
        self.tls.when_settled(settled.set)
        await settled.wait()
        return self.shown()

    def shown(self) -> bytes:
        listener = self.tls.of("OUT")
        assert listener is not None
        return shown_certificate(listener._loaded.context)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    found = Node(tmp_path)
    yield found
    found.tls.close()


def der(issued: Issued) -> bytes:
    return ssl.PEM_cert_to_DER_cert(issued.certificate_pem.decode())


async def test_a_dynamic_keystore_is_used_and_its_removal_returns_to_the_file(node: Node) -> None:
    second = certificate("CN=node")
    texts = {LOCATION: str(node.file("second", second.keystore_pem))}
    assert await node.tried(texts) is None
    assert node.shown() == der(node.first), "a trial changes nothing"
    assert await node.configured(texts) == der(second)
    assert await node.configured({}) == der(node.first)


async def test_a_value_that_is_set_again_makes_the_node_look_at_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_tls, "CHECK_INTERVAL_S", 60)
    node, renewed = Node(tmp_path), certificate("CN=node")
    node.file("first", renewed.keystore_pem)
    record = ConfigRecord(resource_type=BROKER, resource_name="4", name=LOCATION, value="/x")
    node.tls.image_changed(*replay(MetadataImage(), [record], EpochOffset(1, 1), 0))
    async with asyncio.timeout(5):
        while node.shown() != der(renewed):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    node.tls.close()


async def test_texts_in_pem_and_other_keys_are_used(node: Node) -> None:
    second = certificate("CN=node")
    texts = {
        LOCATION: "",
        PREFIX + "ssl.keystore.key": second.key_pem.decode(),
        PREFIX + "ssl.keystore.certificate.chain": second.certificate_pem.decode(),
        PREFIX + "ssl.truststore.certificates": authority().certificate_pem.decode(),
        PREFIX + "ssl.client.auth": "required",
        PREFIX + "ssl.enabled.protocols": "TLSv1.2",
    }
    assert await node.tried(texts) is None
    assert await node.configured(texts) == der(second)
    listener = node.tls.of("OUT")
    assert listener is not None
    context = listener._loaded.context
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.maximum_version is ssl.TLSVersion.TLSv1_2


UNUSABLE: dict[str, tuple[Callable[[Node], dict[str, str]], str]] = {
    "no file": (lambda n: {LOCATION: "/nowhere"}, "No such file"),
    "directory": (lambda n: {LOCATION: str(n.tmp)}, "no regular file"),
    "garbage": (lambda n: {LOCATION: str(n.file("x", b"garbage"))}, "cannot be used"),
    "subject": (
        lambda n: {LOCATION: str(n.file("x", certificate("CN=x").keystore_pem))},
        "its subject",
    ),
    "password": (lambda n: {PREFIX + "ssl.keystore.password": "geheim"}, "must not be set for PEM"),
    "no truststore": (lambda n: {PREFIX + "ssl.client.auth": "required"}, "needs ssl.truststore"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
async def test_what_cannot_be_used_fails_its_trial_and_changes_nothing(
    node: Node, kind: str
) -> None:
    texts_of, reason = UNUSABLE[kind]
    texts = texts_of(node)
    found = await node.tried(texts)
    assert found is not None and reason in found and "listener OUT: " in found
    assert "geheim" not in found
    assert await node.configured(texts) == der(node.first), "as after a start with such a config"


async def test_a_pipe_does_not_hold_up_the_node(node: Node) -> None:
    pipe = node.tmp / "pipe"
    os.mkfifo(pipe)
    found = await node.tried({LOCATION: str(pipe)})
    assert found is not None and "no regular file" in found


async def test_a_slow_key_does_not_hold_up_the_node(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The iterations in an encrypted key may take minutes. The threads of the event loop also
    resolve names, so a trial must not keep one. Only one such trial may run."""
    monkeypatch.setattr(tls_trials, "TRIAL_TIMEOUT_S", 0.05)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    listener = node.tls.of("OUT")
    assert listener is not None
    decrypted, began = threading.Event(), list[object]()

    def slow(settings: object) -> None:
        began.append(settings)
        decrypted.wait()

    monkeypatch.setattr(listener, "check", slow)
    try:
        for reason in ("the stores take more than 0.05 s", "an earlier change still runs"):
            found = await node.tried({LOCATION: "/slow"})
            assert found is not None and reason in found
        async with asyncio.timeout(5):
            await asyncio.to_thread(int)
    finally:
        decrypted.set()
    assert len(began) == 1
    thread = node.tls._trials._thread
    assert thread is not None
    thread.join(5)
    monkeypatch.undo()
    assert await node.tried({}) is None


async def test_the_trials_that_wait_are_bounded(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_trials, "MAX_TRIALS", 2)
    settings, answers = node.settings({}), list[str | None]()
    for _ in range(2):
        node.tls.try_out(settings, [LOCATION], answers.append)
    with pytest.raises(ConfigError, match="Try again"):
        node.tls.try_out(settings, [LOCATION], answers.append)
    async with asyncio.timeout(5):
        while len(answers) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert answers == [None, None]
    assert await node.tried({LOCATION: "/nowhere"}) is not None, "there is room again"


@pytest.mark.parametrize("listener", ["in", "other", "no.such"])
def test_a_key_without_a_listener_is_refused(tmp_path: Path, listener: str) -> None:
    config = config_of(tmp_path / "x")
    with pytest.raises(ConfigError, match=f"listener {listener.upper()} "):
        listeners_of(config, [f"listener.name.{listener}.ssl.keystore.location"])
    assert listeners_of(config, [LOCATION]) == ("OUT",)


def test_only_its_own_broker_checks_a_change(tmp_path: Path) -> None:
    config = config_of(tmp_path / "x")
    stored = {LOCATION: "/a", "log.retention.ms": "5"}

    def change(broker: str, after: Mapping[str, str]) -> tuple[str, ...] | None:
        found = tls_change(config, broker, after, stored if broker == "4" else {}, after)
        return None if found is None else found.names

    assert change("4", {**stored, LOCATION: "/b"}) == (LOCATION,)
    assert change("4", stored) == (LOCATION,), "the same value again"
    assert change("4", {"log.retention.ms": "5"}) == (LOCATION,), "a deletion"
    assert change("5", {"log.retention.ms": "5"}) is None
    assert change("", {LOCATION: "/b"}) is None, "the controller refuses it"
    with pytest.raises(ConfigError, match="expected 4, but received 5"):
        change("5", {LOCATION: "/b"})
    with pytest.raises(ConfigError, match="one of none, requested, required"):
        change("4", {PREFIX + "ssl.client.auth": "perhaps"})


def test_a_change_with_many_names_takes_no_long_step(tmp_path: Path) -> None:
    """A request may have 20,000 configs with names of 32 KB."""
    config = config_of(tmp_path / "x")
    names = [f"listener.name.a{number}.ssl.client.auth" for number in range(20_000)]
    with pytest.raises(ConfigError, match="at most 1000 TLS configs"):
        tls_change(config, "4", names, {}, dict.fromkeys(names, "required"))
    long = [f"{PREFIX}{'.' * 30_000}{number}" for number in range(100)]
    long += [f"{PREFIX}{'.' * 30_000}ssl.client.auth"]

    def cpu_s() -> float:
        began_s = time.process_time()
        assert tls_change(config, "4", long, {}, {}) is None
        return time.process_time() - began_s

    assert min(cpu_s() for _ in range(3)) < 0.02, "it was 0.3 s"


@pytest.mark.parametrize("name", sorted(DYNAMIC_TLS_KEYS))
def test_each_key_has_its_level_and_its_secrecy(name: str) -> None:
    key = dynamic_tls_key(PREFIX + name)
    assert key is not None and key.update is Update.PER_BROKER
    secret = any(part in name for part in ("password", "keystore.key", "certificate"))
    assert is_secret(BROKER, PREFIX + name) == secret
    assert dynamic_tls_key(name) is None
    assert dynamic_tls_key(PREFIX + "ssl.principal.mapping.rules") is None
