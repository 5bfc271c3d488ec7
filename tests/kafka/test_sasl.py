"""Apache Kafka's tools over SASL_PLAINTEXT, against a Quorate cluster with an authorizer.

The super user logs in with PLAIN, and the other one with a SCRAM credential that Kafka's tool
makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from quorate.config.authorizer_keys import STANDARD_AUTHORIZER
from tests.clients.cluster import ProcessCluster, running
from tests.clients.test_sasl import PLAIN, SCRAM
from tests.clients.test_sasl_tls import LISTENER, MAP, SHAPE
from tests.kafka.tools import Ended, kafka, missing

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
SETTINGS = (
    MAP.format("SASL_PLAINTEXT"),
    "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512",
    f'{LISTENER}.plain.sasl.jaas.config={PLAIN} user_admin="secret";',
    f"authorizer.class.name={STANDARD_AUTHORIZER}",
    "super.users=User:admin",
)


def client(mechanism: str, module: str, user: str, password: str) -> str:
    """Return the content of a client's file."""
    return (
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={module} username="{user}" password="{password}";\n'
        "default.api.timeout.ms=10000\nrequest.timeout.ms=9000\n"
    )


@dataclass(frozen=True, slots=True)
class Secured:
    """A cluster of processes, and the files of its users."""

    cluster: ProcessCluster
    admin: Path
    carol: Path
    wrong: Path

    def run(self, user: Path, name: str, *arguments: str) -> Ended:
        """Run a tool of Kafka as this user."""
        options = ("--bootstrap-server", self.cluster.bootstrap, "--command-config", str(user))
        return kafka(name, *options, *arguments)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    root = tmp_path_factory.mktemp("sasl")
    files = []
    for name, text in (
        ("admin", client("PLAIN", PLAIN, "admin", "secret")),
        ("carol", client("SCRAM-SHA-512", SCRAM, "carol", "pencil")),
        ("wrong", client("SCRAM-SHA-512", SCRAM, "carol", "pen")),
    ):
        files.append(root / f"{name}.properties")
        files[-1].write_text(text)
    overrides = [word for each in SETTINGS for word in ("--override", each)]
    options = (*SHAPE, *overrides, "--command-config", str(files[0]))
    with running(root / "cluster", *options) as cluster:
        yield Secured(cluster, *files)


def test_users_and_permissions_made_by_kafkas_tools(secured: Secured) -> None:
    user = ("--alter", "--entity-type", "users", "--entity-name", "carol")
    made = secured.run(
        secured.admin, "configs", *user, "--add-config", "SCRAM-SHA-512=[password=pencil]"
    )
    assert made.lines == ["Completed updating config for user carol."], made.errors
    topic = ("--create", "--topic", "t", "--partitions", "1", "--replication-factor", "1")
    denied = secured.run(secured.carol, "topics", *topic)
    assert denied.code == 1
    assert "Not authorized for the topic" in "".join(denied.lines)
    added = secured.run(
        *(secured.admin, "acls", "--add", "--allow-principal", "User:carol", "--topic", "t"),
        *("--operation", "Create", "--operation", "Describe"),
    )
    assert added.code == 0, added.errors
    created = secured.run(secured.carol, "topics", *topic)
    assert created.lines == ["Created topic t."], created.errors
    listed = secured.run(secured.carol, "topics", "--list")
    assert listed.lines == ["t"], listed.errors
    refused = secured.run(secured.carol, "acls", "--list")
    assert "ClusterAuthorizationException" in "".join(refused.lines)


def test_a_wrong_password_is_refused(secured: Secured) -> None:
    refused = secured.run(secured.wrong, "topics", "--list")
    assert refused.code == 1
    assert "Authentication failed" in refused.errors + "".join(refused.lines)
