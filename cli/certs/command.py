"""`quorate certs`: an authority, and the certificates of nodes and clients."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from quorate.cli.client.errors import Refused
from quorate.cli.parsing.suggesting_group import SuggestingGroup
from quorate.cli.terminal.safe_text import echo
from quorate.config.key import MAX_INT
from quorate.config.properties import escape

if TYPE_CHECKING:
    from quorate.quorum.secured.authority_dir import AuthorityDir

F = TypeVar("F", bound=Callable[..., Any])
DAYS_OF_AUTHORITY, DAYS = 3650, 365
CLUSTER_ID = re.compile("[!-~]+")
HOST = re.compile(r"[\w.:*-]{1,255}")
MAX_DAYS = 36_500
MAX_NAME = 64
"""The most characters of a common name (X.520)."""


def common_options(days: int, *, renewable: bool) -> Callable[[F], F]:
    """Return a decorator that adds --dir and --days, and --renew if `renewable`."""

    def decorated(command: F) -> F:
        if renewable:
            command = click.option(
                "--renew", is_flag=True, help="Replace the certificate and its key."
            )(command)
        command = click.option(
            "--days",
            type=click.IntRange(1, MAX_DAYS),
            default=days,
            show_default=True,
            help="The validity, at most that of the authority.",
        )(command)
        return click.option(
            "--dir",
            "root",
            type=click.Path(file_okay=False, path_type=Path),
            required=True,
            help="The directory of the authority.",
        )(command)

    return decorated


@click.group(cls=SuggestingGroup)
def certs() -> None:
    """Make and renew certificates for TLS.

    The directory of the authority holds its key. Keep it where no node and no client can read
    it, and copy the directory of a node to that node."""


@certs.command()
@common_options(DAYS_OF_AUTHORITY, renewable=False)
@click.option("--name", default="Quorate", show_default=True, help="The name of the authority.")
def authority(root: Path, days: int, name: str) -> None:
    """Create a certificate authority."""
    with authority_in(root) as directory:
        directory.create(checked(name), days)
    echo(f"Created {directory.certificate}, which nodes and clients need as a truststore.")
    echo(f"Its private key is in {directory.key}: keep it where no node and no client can read it.")


@certs.command()
@common_options(DAYS, renewable=True)
@click.option(
    "--id", "node_id", type=click.IntRange(0, MAX_INT), required=True, help="The node id."
)
@click.option(
    "--host", "hosts", multiple=True, help="A host in advertised.listeners. May be repeated."
)
@click.option(
    "--cluster-id",
    help="The cluster of the node. Its certificate then proves the node's id to other nodes.",
)
def node(
    root: Path, days: int, renew: bool, node_id: int, hosts: tuple[str, ...], cluster_id: str | None
) -> None:
    """Make the certificate of a node, and print the lines for its properties file.

    With --renew, the hosts and the cluster remain if none is given. A running node notices the new
    file."""
    from quorate.quorum.rpc.node_identity import node_uri
    from quorate.quorum.secured.authority_dir import Names

    if not hosts and not renew:
        raise click.UsageError("--host must be given, because clients compare it")
    for host in hosts:
        if not HOST.fullmatch(host) or host.count(":") == 1:
            raise click.BadParameter(
                f"value {host[:100]!r} must be a host name or an address, without a port",
                param_hint="--host",
            )
    if cluster_id is not None and not CLUSTER_ID.fullmatch(cluster_id):
        raise click.BadParameter(
            f"value {cluster_id!r} must be ASCII without blanks, because a URI has it. `quorate "
            "storage random-uuid` prints the id of a new cluster",
            param_hint="--cluster-id",
        )
    uris = (node_uri(cluster_id, node_id),) if cluster_id else ()
    name = f"node-{node_id}"
    with authority_in(root) as directory:
        keystore = directory.issue(name, name, days, Names(hosts, uris), renew=renew)
    echo(f"# The key and the certificate of node {node_id} are in {keystore.absolute().parent}.")
    echo(f"ssl.keystore.type=PEM\nssl.keystore.location={escape(str(keystore.absolute()))}")
    echo("ssl.truststore.type=PEM")
    echo(f"ssl.truststore.location={escape(str(directory.certificate.absolute()))}")


@certs.command()
@common_options(DAYS, renewable=True)
@click.option("--name", required=True, help="The user. The principal is User:CN=NAME.")
def client(root: Path, days: int, renew: bool, name: str) -> None:
    """Make the certificate of a client, with a file for clients of Java and one for librdkafka."""
    from quorate.quorum.secured.authority_dir import Names
    from quorate.quorum.secured.private_files import write

    with authority_in(root) as directory:
        own = f"client-{checked(name)}"
        keystore = directory.issue(own, name, days, Names(), renew=renew).absolute()
        ca = directory.certificate.absolute()
        java = (
            "security.protocol=SSL\nssl.truststore.type=PEM\n"
            f"ssl.truststore.location={escape(str(ca))}\nssl.keystore.type=PEM\n"
            f"ssl.keystore.location={escape(str(keystore))}\n"
        )
        librdkafka = (
            f"security.protocol=ssl\nssl.ca.location={ca}\n"
            f"ssl.certificate.location={keystore.with_name('cert.pem')}\n"
            f"ssl.key.location={keystore.with_name('key.pem')}\n"
        )
        for file, text in (("client.properties", java), ("librdkafka.properties", librdkafka)):
            write(keystore.with_name(file), text.encode())
            echo(f"Wrote {keystore.with_name(file)}")


@contextmanager
def authority_in(root: Path) -> Iterator[AuthorityDir]:
    """Yield the directory of an authority. Raise Refused if a file cannot be read, written or
    used."""
    from quorate.quorum.secured.authority_dir import AuthorityDir
    from quorate.quorum.secured.private_files import SecurityFileError

    try:
        yield AuthorityDir(root)
    except SecurityFileError as error:
        raise Refused(str(error)) from None


def checked(name: str) -> str:
    """Return a name that a certificate and a file can have, else raise Refused."""
    if not name or len(name) > MAX_NAME or "/" in name or not name.isprintable():
        raise Refused(f"--name: value {name!r} must have 1 to {MAX_NAME} characters and no slash")
    return name
