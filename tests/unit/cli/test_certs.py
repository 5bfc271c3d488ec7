"""`quorate certs`: the files work with TLS, their permissions, and what is refused."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cryptography import x509

from quorate.cli.certs.command import certs
from quorate.cli.client.client_properties import client_security
from quorate.config import properties
from quorate.quorum.rpc.tls.context import server_context
from quorate.quorum.rpc.tls.settings import TlsSettings
from quorate.quorum.secured.authority_dir import names_of
from tests.unit.rpc.tls.test_stores import shaken


def run(*arguments: str) -> Result:
    return CliRunner().invoke(certs, arguments)


def made(tmp: Path) -> Path:
    """Return the directory of an authority with a node and a client."""
    root = tmp / "ca"
    hosts = ("--host", "localhost", "--host", "127.0.0.1")
    for arguments in (
        ("authority", "--dir", str(root)),
        ("node", "--dir", str(root), "--id", "4", *hosts),
        ("client", "--dir", str(root), "--name", "alice"),
    ):
        result = run(*arguments)
        assert result.exit_code == 0, result.output
    return root


def entries(text: str) -> dict[str, str]:
    return {each.name: each.value for each in properties.parse(text, "test")}


def server_of(text: str) -> ssl.SSLContext:
    """Return the context of a node with these lines in its file."""
    from quorate.config.tls_keys import TLS

    given = {**entries(text), "ssl.client.auth": "required"}
    keys = {key.name: key for key in TLS}
    return server_context(
        TlsSettings.of(
            lambda name: keys[name].parse(given[name]) if name in given else keys[name].default
        )
    )


@pytest.mark.parametrize("family", ["client.properties", "librdkafka.properties"])
def test_a_node_and_a_client_trust_each_other(tmp_path: Path, family: str) -> None:
    root = made(tmp_path)
    printed = run("node", "--dir", str(root), "--id", "4", "--renew")
    client = client_security(entries((root / "client-alice" / family).read_text())).tls
    assert client is not None
    assert shaken(server_of(printed.stdout), client).startswith("TLSv1.3")


def test_the_output_says_where_the_keys_are(tmp_path: Path) -> None:
    root = tmp_path / "ca"
    made_authority = run("authority", "--dir", str(root))
    assert f"Its private key is in {root / 'ca.key'}: keep it" in made_authority.output
    made_node = run("node", "--dir", str(root), "--id", "4", "--host", "h")
    first, *settings = made_node.output.splitlines()
    assert first == f"# The key and the certificate of node 4 are in {root / 'node-4'}."
    assert len(entries("\n".join(settings))) == 4


def test_a_missing_authority_is_named_once(tmp_path: Path) -> None:
    done = run("node", "--dir", str(tmp_path), "--id", "4", "--host", "h")
    assert done.output == (
        f"Error: {tmp_path / 'ca.pem'}: No such file or directory. "
        "`quorate certs authority` creates one\n"
    )


def test_only_the_owner_can_read_keys(tmp_path: Path) -> None:
    root = made(tmp_path)
    for path in root.rglob("*"):
        mode = path.stat().st_mode & 0o777
        if path.is_dir():
            assert mode == 0o700, path
        elif b"PRIVATE KEY" in path.read_bytes() or path.suffix == ".properties":
            assert mode == 0o600, path
        else:
            assert mode == 0o644, path
        assert not path.name.startswith(".")


def test_a_renewal_keeps_the_subject_and_the_hosts(tmp_path: Path) -> None:
    root = made(tmp_path)
    keystore = root / "node-4" / "keystore.pem"
    before = keystore.read_bytes()
    assert run("node", "--dir", str(root), "--id", "4", "--renew").exit_code == 0
    assert keystore.read_bytes() != before
    assert names_of(keystore).hosts == ("localhost", "127.0.0.1")
    more = ("--renew", "--host", "other.example")
    assert run("node", "--dir", str(root), "--id", "4", *more).exit_code == 0
    assert names_of(keystore).hosts == ("other.example",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("authority",), "has a certificate authority already"),
        (("node", "--id", "4", "--host", "x"), "--renew replaces it"),
        (("node", "--id", "5", "--renew"), "cannot be renewed"),
        (("node", "--id", "5"), "--host must be given"),
        (("node", "--id", "5", "--host", "b\xfccher.example"), "--host: value 'b\xfccher.example'"),
        (("client", "--name", "alice"), "--renew replaces it"),
        (("client", "--name", "../alice"), "and no slash"),
        (("client", "--name", "a\nb"), "and no slash"),
        (("client", "--name", "x" * 65), "1 to 64 characters"),
    ],
)
def test_what_is_refused(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    root = made(tmp_path)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    result = run(arguments[0], "--dir", str(root), *arguments[1:])
    assert result.exit_code != 0
    assert message in result.output
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "options",
    [
        ("--id", "9", "--host", ""),
        ("--id", "9", "--host", "two words"),
        ("--id", "9", "--host", "b4:9092"),
        ("--id", "9", "--host", "a" * 256),
        ("--id", str(2**31), "--host", "localhost"),
    ],
)
def test_a_certificate_that_no_client_accepts_is_not_made(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """An empty host comes from a variable that is not set."""
    assert run("authority", "--dir", str(tmp_path)).exit_code == 0
    result = run("node", "--dir", str(tmp_path), *options)
    assert result.exit_code == 2
    assert not list(tmp_path.glob("node-*"))


def test_the_lines_for_a_file_have_escapes(tmp_path: Path) -> None:
    root = made(tmp_path / "a\\b")
    printed = run("node", "--dir", str(root), "--id", "5", "--host", "h").output
    assert entries(printed)["ssl.keystore.location"] == str(root / "node-5" / "keystore.pem")
    client = entries((root / "client-alice" / "client.properties").read_text())
    assert client["ssl.truststore.location"] == str(root / "ca.pem")


def test_the_name_of_an_authority_is_no_syntax(tmp_path: Path) -> None:
    result = run("authority", "--dir", str(tmp_path), "--name", "Acme, Inc+O=x")
    assert result.exit_code == 0, result.output
    (trusted,) = x509.load_pem_x509_certificates((tmp_path / "ca.pem").read_bytes())
    (attribute,) = trusted.subject
    assert attribute.value == "Acme, Inc+O=x"


def test_without_an_authority_nothing_is_issued(tmp_path: Path) -> None:
    result = run("client", "--dir", str(tmp_path / "none"), "--name", "alice")
    assert result.exit_code == 1 and "`quorate certs authority` creates one" in result.output
    (tmp_path / "ca.key").write_text("nothing")
    (tmp_path / "ca.pem").write_text("nothing")
    assert run("client", "--dir", str(tmp_path), "--name", "alice").exit_code == 1


def test_missing_parents_are_for_the_owner_only(tmp_path: Path) -> None:
    assert run("authority", "--dir", str(tmp_path / "a" / "b" / "ca")).exit_code == 0
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        assert path.stat().st_mode & 0o777 == 0o700, path


def test_a_renewal_keeps_the_cluster_of_a_node(tmp_path: Path) -> None:
    node = ("node", "--dir", str(tmp_path), "--id", "4")
    assert run("authority", "--dir", str(tmp_path)).exit_code == 0
    assert run(*node, "--host", "localhost", "--cluster-id", "c").exit_code == 0
    assert run(*node, "--renew").exit_code == 0
    found = names_of(tmp_path / "node-4" / "keystore.pem")
    assert found == (("localhost",), ("quorate://c/node/4",))


@pytest.mark.parametrize("cluster_id", ["", "two words", "\u00fc"])
def test_a_cluster_id_that_no_uri_has_is_refused(tmp_path: Path, cluster_id: str) -> None:
    """An empty one would make a certificate that proves nothing."""
    assert run("authority", "--dir", str(tmp_path)).exit_code == 0
    node = ("node", "--dir", str(tmp_path), "--id", "4", "--host", "localhost")
    result = run(*node, "--cluster-id", cluster_id)
    assert result.exit_code == 2
    assert "--cluster-id" in result.output
    assert not (tmp_path / "node-4").exists()
