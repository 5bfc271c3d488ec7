"""The files that secure a whole cluster, and the settings of its nodes that name them.

- `security/` is the directory of a certificate authority (`authority_dir.py`). It has issued the
  certificates of the nodes and of the admin, and holds the token of HTTP requests to nodes.
- `client.properties` and `librdkafka.properties` let clients log in at brokers as the admin.
- `controllers.properties` lets commands connect to controllers, with the admin's certificate.

Clients log in by SCRAM over TLS, nodes prove their ids by TLS, and without an ACL only the admin
has permissions.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from quorate.config.properties import parse, render
from quorate.quorum.metadata.scram_records import UserScramCredentialRecord
from quorate.quorum.rpc.node_identity import node_uri
from quorate.quorum.sasl.scram_mechanisms import MIN_ITERATIONS, SHA_512, keys_of
from quorate.quorum.secured.authority_dir import AuthorityDir, Names, names_of
from quorate.quorum.secured.private_files import SecurityFileError, write

ADMIN = "admin"
CLIENT_LISTENER = "SASL_SSL"
"""The name and the protocol of the listener for clients."""
HOSTS = ("127.0.0.1", "localhost")
DAYS_OF_AUTHORITY, DAYS = 3650, 365


class SecuredDir:
    """The files below one directory. All methods block, and raise SecurityFileError if a file
    cannot be read, written or used."""

    admin = ADMIN
    client_listener = CLIENT_LISTENER

    def __init__(self, root: Path) -> None:
        self.authority = AuthorityDir(root / "security")
        self.java = root / "client.properties"
        self.librdkafka = root / "librdkafka.properties"
        self.controllers = root / "controllers.properties"
        self.token = self.authority.root / "http.token"

    @property
    def exists(self) -> bool:
        """Return True if `create` was complete."""
        return self.java.exists()

    def create(self, cluster_id: str, node_ids: Iterable[int]) -> None:
        """Make all files of a new cluster. Files of an earlier call that did not end are replaced
        or kept. Everything is durable on return. Raise SecurityFileError if a file that this class
        has not made would be replaced."""
        if not self.authority.certificate.exists():
            for each in (self.java, self.librdkafka, self.controllers):
                if each.exists():
                    raise SecurityFileError(
                        f"{each} exists already, and a secure cluster would replace it. Move it "
                        "away, or choose another directory"
                    )
            self.authority.create("Quorate", DAYS_OF_AUTHORITY)
        for node_id in node_ids:
            names = Names(HOSTS, (node_uri(cluster_id, node_id),))
            self._issue(f"node-{node_id}", f"node-{node_id}", names)
        admin = self._issue(f"client-{ADMIN}", ADMIN, Names())
        write(self.token, secrets.token_urlsafe(32).encode())
        password = secrets.token_urlsafe(24)
        ca = str(self.authority.certificate)
        stores = {"ssl.truststore.type": "PEM", "ssl.truststore.location": ca}
        http = {"quorate.http.token.file": str(self.token)}
        own = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(admin)}
        self._write(self.controllers, {"security.protocol": "SSL", **stores, **own, **http})
        login = {"security.protocol": "SASL_SSL", "sasl.mechanism": SHA_512.name}
        self._write(
            self.librdkafka,
            {
                **login,
                "sasl.username": ADMIN,
                "sasl.password": password,
                "ssl.ca.location": ca,
            },
        )
        jaas = (
            "org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{ADMIN}" password="{password}";'
        )
        self._write(self.java, {**login, "sasl.jaas.config": jaas, **stores, **http})

    def settings(self, node_id: int) -> Mapping[str, str]:
        """Return the further settings of a node."""
        keystore = self.authority.keystore(f"node-{node_id}")
        return {
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,REPLICATION:SSL,CONTROLLER:SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "sasl.enabled.mechanisms": SHA_512.name,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{ADMIN};User:CN={ADMIN}",
            "quorate.http.token.file": str(self.token),
        }

    @property
    def admin_keystore(self) -> Path:
        """Return the path of the keystore with the admin's certificate."""
        return self.authority.keystore(f"client-{ADMIN}")

    def librdkafka_settings(self) -> dict[str, str]:
        """Return the settings with which a client of librdkafka logs in as the admin."""
        return {each.name: each.value for each in parse(self._text(self.librdkafka))}

    def cluster_id(self, node_id: int) -> str:
        """Return the cluster id in the certificate of a node."""
        for uri in names_of(self.authority.keystore(f"node-{node_id}")).uris:
            cluster_id = uri.removeprefix("quorate://").partition("/")[0]
            if uri == node_uri(cluster_id, node_id):
                return cluster_id
        raise SecurityFileError(f"the certificate of node {node_id} names no node")

    def credential(self) -> UserScramCredentialRecord:
        """Return the SCRAM credential of the admin, with a new salt."""
        entries = self.librdkafka_settings()
        salt = secrets.token_urlsafe(18).encode()
        salted = SHA_512.salted_password(entries["sasl.password"], salt, MIN_ITERATIONS)
        keys = keys_of(SHA_512, salted)
        return UserScramCredentialRecord(
            name=ADMIN,
            mechanism=SHA_512.number,
            salt=salt,
            stored_key=keys.stored_key,
            server_key=keys.server_key,
            iterations=MIN_ITERATIONS,
        )

    def _issue(self, directory: str, common_name: str, names: Names) -> Path:
        renew = self.authority.keystore(directory).exists()
        return self.authority.issue(directory, common_name, DAYS, names, renew=renew)

    def _write(self, path: Path, settings: Mapping[str, str]) -> None:
        write(path, render(dict(settings)).encode())

    def _text(self, path: Path) -> str:
        try:
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SecurityFileError(f"{path}: {error}") from None
