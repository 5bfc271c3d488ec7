"""`quorate up --secure` as an operator types it, and clients with the files that it writes."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from quorate.cli.console.access.request_rules import TOKEN_HEADER
from quorate.cli.nodes.cluster_dir import ClusterDir
from quorate.config.properties import parse
from tests.clients.cluster import run_quorate, wait_for
from tests.clients.librdkafka import SILENT

pytestmark = [pytest.mark.clients, pytest.mark.timeout(120)]
SHAPE = ("--controllers", "1", "--brokers", "2", "--port", "0", "--detach")


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterDir]:
    """A cluster that has been created with --secure, and started a second time."""
    directory = ClusterDir(tmp_path_factory.mktemp("secure") / "cluster")
    up = ("up", "--dir", str(directory.root), "--secure", *SHAPE)
    try:
        created = run_quorate(*up, timeout_s=60)
        assert created.returncode == 0, created.stderr
        controllers = directory.read()["bootstrap_controllers"]
        assert f"--bootstrap-controller {controllers} --command-config " in created.stderr
        assert run_quorate("down", "--dir", str(directory.root)).returncode == 0
        again = run_quorate(*up, "--console", "0", timeout_s=60)
        assert again.returncode == 0, again.stderr
        (directory.root.parent / "up.out").write_text(again.stdout)
        yield directory
    finally:
        run_quorate("down", "--dir", str(directory.root))


def librdkafka(directory: ClusterDir, **changed: str) -> dict[str, Any]:
    """Return the settings of a client of librdkafka."""
    file = (directory.root / "librdkafka.properties").read_text()
    found = {each.name: each.value for each in parse(file)}
    return {**found, "bootstrap.servers": directory.read()["bootstrap"], **changed}


def test_commands_use_the_file_for_java(secure: ClusterDir) -> None:
    bootstrap = ("--bootstrap-server", secure.read()["bootstrap"])
    own = ("--command-config", str(secure.root / "client.properties"))
    made = run_quorate("topics", *bootstrap, *own, "--create", "--topic", "t")
    assert made.returncode == 0, made.stderr
    shown = run_quorate("status", *bootstrap, *own, "--format", "json")
    assert shown.returncode == 0, shown.stderr
    status = json.loads(shown.stdout)
    assert (status["topics"], status["problems"]) == (1, [])
    assert all(each["certificate"] for each in status["brokers"])
    changes = run_quorate("status", *bootstrap, *own, "--changes", "--format", "json")
    assert changes.returncode == 0, changes.stderr


def test_commands_reach_controllers_with_the_admins_certificate(secure: ClusterDir) -> None:
    controllers = secure.read()["bootstrap_controllers"]
    describe = ("metadata-quorum", "--bootstrap-controller", controllers)
    own = ("--command-config", str(secure.root / "controllers.properties"))
    found = run_quorate(*describe, *own, "describe", "--status")
    assert found.returncode == 0, found.stderr


def test_librdkafka_uses_its_file(secure: ClusterDir) -> None:
    admin = AdminClient(librdkafka(secure), logger=SILENT)
    assert len(admin.list_topics(timeout=30).brokers) == 2


@pytest.mark.parametrize(
    "wrong", [{"sasl.password": "wrong"}, {"security.protocol": "ssl"}, {"ssl.ca.location": ""}]
)
def test_a_client_with_something_else_is_refused(secure: ClusterDir, wrong: dict[str, str]) -> None:
    admin = AdminClient(librdkafka(secure, **wrong), logger=SILENT)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=1)


def test_a_command_without_the_file_names_the_remedy(secure: ClusterDir) -> None:
    listed = run_quorate("topics", "--bootstrap-server", secure.read()["bootstrap"], "--list")
    assert listed.returncode == 1
    assert "demands TLS: give --command-config a file with" in listed.stdout + listed.stderr


def test_only_the_owner_can_read_the_secrets(secure: ClusterDir) -> None:
    secrets = [path for path in secure.root.rglob("*") if path.is_file()]
    public = [path for path in secrets if path.suffix == ".pem" and path.stem in ("ca", "cert")]
    assert public
    for path in secrets:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o644 if path in public else 0o600), path


def test_the_same_option_is_needed_again(secure: ClusterDir, tmp_path: Path) -> None:
    plain = run_quorate("up", "--dir", str(secure.root), *SHAPE)
    assert plain.returncode == 1
    assert "was created with --secure: give it again" in plain.stderr
    other = ClusterDir(tmp_path / "plain")
    other.node_file(1).parent.mkdir(parents=True)
    later = run_quorate("up", "--dir", str(other.root), "--secure", *SHAPE)
    assert later.returncode == 1
    assert "was created without --secure: choose another --dir" in later.stderr
    both = run_quorate("up", "--dir", str(other.root), "--secure", "--command-config", "f")
    assert both.returncode == 2


def test_the_console_reads_the_cluster_as_the_admin_and_ends_with_it(secure: ClusterDir) -> None:
    """This test is the last one, because it stops the cluster."""
    ready, console = (secure.root.parent / "up.out").read_text().splitlines()
    assert ready == f"ready {secure.read()['bootstrap']}"
    found = re.fullmatch(r"console at (http://127\.0\.0\.1:\d+/)#token=(\S+)", console)
    assert found is not None, console
    request = Request(f"{found[1]}api/overview", headers={TOKEN_HEADER: found[2]})

    def brokers() -> int:
        with urlopen(request, timeout=30) as answer:
            return int(json.load(answer).get("brokers", 0))

    wait_for(lambda: brokers() == 2, "the console has read the cluster")
    assert run_quorate("down", "--dir", str(secure.root)).returncode == 0
    with pytest.raises(URLError):
        brokers()
