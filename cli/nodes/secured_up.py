"""`quorate up --secure`: the files that secure a local cluster, and how clients use them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.cli.client.errors import Refused
from quorate.cli.nodes.cluster_dir import ClusterDir, Shape

if TYPE_CHECKING:
    from quorate.quorum.secured.secured_dir import SecuredDir


def secured_dir(directory: ClusterDir, shape: Shape) -> SecuredDir:
    """Return the files that secure the cluster. Create them if the cluster is new.

    Raise Refused if the directory holds a cluster without them, or if a file cannot be written."""
    import random

    from quorate.quorum.ids import random_uuid, uuid_to_text
    from quorate.quorum.secured.private_files import SecurityFileError
    from quorate.quorum.secured.secured_dir import SecuredDir

    found = SecuredDir(directory.root)
    if not directory.node_ids():
        cluster_id = uuid_to_text(random_uuid(random.SystemRandom()))
        try:
            found.create(cluster_id, range(1, shape.controllers + shape.brokers + 1))
        except SecurityFileError as error:
            raise Refused(str(error)) from None
    elif not found.exists:
        raise Refused(
            f"{directory.root} holds a cluster that was created without --secure: choose another "
            "--dir for a secure one"
        )
    return found


def is_secured(root: Path) -> bool:
    """Return True if `up --secure` has created the cluster below `root`."""
    return (root / "security").is_dir() and client_file_of(root).exists()


def client_file_of(root: Path) -> Path:
    """Return the path of the file with which clients log in as the admin."""
    return root / "client.properties"


def controllers_file_of(root: Path) -> Path:
    """Return the path of the file with which the admin connects to controllers."""
    return root / "controllers.properties"


def ways_to_connect(files: SecuredDir, bootstrap: str, controllers: str) -> Iterator[str]:
    """Yield the lines that say how clients of each family connect as the admin. `bootstrap` and
    `controllers` list the addresses of the brokers and of the controllers."""
    java, librdkafka = files.java, files.librdkafka
    quorum = f"--bootstrap-controller {controllers} --command-config {files.controllers}"
    yield f"clients log in as {files.admin} over TLS:"
    yield f"  quorate       quorate topics --bootstrap-server {bootstrap} --command-config {java}"
    yield f"  controllers   quorate metadata-quorum {quorum} describe --status"
    yield f"  Kafka's tools kafka-topics.sh --bootstrap-server {bootstrap} --command-config {java}"
    yield f"  kcat          kcat -b {bootstrap} -F {librdkafka} -L"
    yield f"  Java          the properties in {java}"
    yield f"  librdkafka    the properties in {librdkafka}"
    yield (
        "  aiokafka      security_protocol='SASL_SSL', sasl_mechanism='SCRAM-SHA-512', the user "
        f"and password in {librdkafka}, and a TLS context that trusts {files.authority.certificate}"
    )
