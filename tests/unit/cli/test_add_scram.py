"""`quorate storage format --add-scram`: the first users of a cluster, and each refusal."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.config.dynamic_broker_keys import SCRAM_SECRET
from quorate.quorum.controller.state.settings import ControllerSettings
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.metadata.scram_records import UserScramCredentialRecord
from quorate.quorum.node.opening.bootstrap_file import bootstrap_records
from quorate.quorum.node.opening.meta_properties import StorageError
from quorate.quorum.sasl.scram_mechanisms import SHA_256, SHA_512, keys_of
from tests.unit.controller.harness import Driver


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def formatted(data: Path, *texts: str) -> Result:
    file = data.parent / "server.properties"
    file.write_text(
        f"process.roles=controller\nnode.id=1\nlog.dirs={data}\n"
        "controller.quorum.voters=1@localhost:9093\n"
        "listeners=CONTROLLER://localhost:9093\ncontroller.listener.names=CONTROLLER\n"
    )
    options = [part for each in texts for part in ("--add-scram", each)]
    cluster_id = "MkU3OEVBNTcwNTJENDM2Qk"
    return CliRunner().invoke(
        main, ["storage", "format", "-t", cluster_id, "-c", str(file), *options]
    )


def committed(data: Path) -> Driver:
    """Return the first active controller of the cluster."""
    disk = OsDisk()
    records = bootstrap_records(disk, str(data))
    disk.close()
    return Driver(ControllerSettings(cluster_id="c", node_id=1, bootstrap_records=records))


def test_the_first_controller_commits_the_credentials_and_the_secret(data: Path) -> None:
    secret = data.parent / "password"
    secret.write_text("pass,word]\n")
    salt = base64.b64encode(b"salt").decode()
    salted = base64.b64encode(b"salted").decode()
    done = formatted(
        data,
        "SCRAM-SHA-256=[name=admin,password=canary]",
        f"SCRAM-SHA-512=[name=admin, password-file={secret}, iterations=8192]",
        f'SCRAM-SHA-256=[name="a,b",salt="{salt}",saltedpassword="{salted}"]',
    )
    assert done.exit_code == 0, done.output
    assert "canary" not in done.output
    image = committed(data).image
    assert set(image.scram_credentials) == {("admin", 1), ("admin", 2), ("a,b", 1)}
    assert len(image.config(4, "")[SCRAM_SECRET]) == 64
    admin, other = image.scram_credentials["admin", 1], image.scram_credentials["admin", 2]
    assert (admin.iterations, other.iterations) == (4096, 8192)
    for mechanism, found, password in ((SHA_256, admin, "canary"), (SHA_512, other, "pass,word]")):
        keys = keys_of(mechanism, mechanism.salted_password(password, found.salt, found.iterations))
        assert (found.stored_key, found.server_key) == keys
    given = image.scram_credentials["a,b", 1]
    assert (given.salt, given.stored_key) == (b"salt", keys_of(SHA_256, b"salted").stored_key)
    dumped = CliRunner().invoke(
        main,
        ["dump-log", "--cluster-metadata-decoder", "--files", str(data / "bootstrap.checkpoint")],
    )
    assert '"name":"admin","mechanism":1,"salt":""' in dumped.output
    assert '"value":"[hidden]"' in dumped.output


def test_without_users_there_are_no_further_records(data: Path) -> None:
    assert formatted(data).exit_code == 0
    disk = OsDisk()
    assert bootstrap_records(disk, str(data)) == ()
    assert bootstrap_records(disk, str(data.parent)) == (), "there is no file"
    disk.close()


def test_a_damaged_file_is_refused(data: Path) -> None:
    formatted(data, "SCRAM-SHA-256=[name=admin,password=x]")
    file = data / "bootstrap.checkpoint"
    file.write_bytes(file.read_bytes()[:-5])
    disk = OsDisk()
    with pytest.raises(StorageError, match=r"bootstrap\.checkpoint.*Restore it, or remove it"):
        bootstrap_records(disk, str(data))
    disk.close()


def test_the_records_are_committed_once() -> None:
    record = UserScramCredentialRecord(
        name="a", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"k", iterations=4096
    )
    settings = ControllerSettings(cluster_id="c", node_id=1, bootstrap_records=(record,))
    driver = Driver(settings)
    assert driver.log.count(record) == 1
    result = driver.controller.activate(driver.image, now_ms=1, next_offset=100)
    assert record not in result.records


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("canary", "must begin with SCRAM-SHA-256 or SCRAM-SHA-512"),
        ("SCRAM-SHA-1=[name=a,password=canary]", "must begin with SCRAM-SHA-256"),
        ("SCRAM-SHA-256=[password=canary]", "must have a name"),
        ("SCRAM-SHA-256=[name=a]", "must have one of password"),
        ("SCRAM-SHA-256=[name=a,password=canary,saltedpassword=canary]", "must have one of"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=Y2FuYXJ5]", "needs its salt"),
        ("SCRAM-SHA-256=[name=a,password=canary,iterations=100]", "between 4096 and 16384"),
        ("SCRAM-SHA-256=[name=a,password=canary,salt=!]", "must be in base 64"),
        ("SCRAM-SHA-256=[name=a,password=canary,color=red]", "must be some of name"),
        ("SCRAM-SHA-256=[name=a,name=b,password=canary]", "each once"),
        ("SCRAM-SHA-256=[name=a,password-file=/none]", "password file"),
    ],
)
def test_a_refusal_formats_nothing_and_quotes_no_password(
    data: Path, text: str, message: str
) -> None:
    done = formatted(data, text)
    assert done.exit_code == 1
    assert message in done.output
    assert "canary" not in done.output
    assert not data.exists()


def test_a_user_is_given_once_for_each_mechanism(data: Path) -> None:
    text = "SCRAM-SHA-256=[name=a,password=b]"
    assert "given twice" in formatted(data, text, text).output
