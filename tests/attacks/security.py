"""The TLS and the logins of an attacked cluster, from the files of --command-config."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from quorate.cli.client.client_file import ClientFile
from quorate.cli.client.sasl_login import SaslLogin
from quorate.config.properties import parse
from quorate.quorum.seams import Address
from tests.attacks.raw import Raw

CA = {"ssl.truststore.location": "ssl.ca.location", "ssl.ca.location": "ssl.ca.location"}
"""The key of Java or of librdkafka, and that of librdkafka. The file must be PEM."""


@dataclass(frozen=True, slots=True)
class Files:
    """The .properties files of clients of the brokers and of the controllers. Without a file there
    is neither TLS nor a login."""

    brokers: Path | None = None
    controllers: Path | None = None

    def arguments(self) -> list[str]:
        """Return the arguments of an attacker's process."""
        named = (("--command-config", self.brokers), ("--controller-config", self.controllers))
        return [text for name, path in named if path is not None for text in (name, str(path))]

    def use(self, controllers: Iterable[Address]) -> None:
        """Let all connections of this process begin as the files demand. Blocks."""
        Raw.security.clear()
        if self.brokers is not None:
            Raw.security[None] = ClientFile.read(str(self.brokers)).security
        file = self.controllers or self.brokers
        if file is not None:
            Raw.security.update(dict.fromkeys(controllers, ClientFile.read(str(file)).security))

    def librdkafka(self) -> dict[str, str]:
        """Return the settings of the honest clients, which librdkafka connects. Blocks."""
        if self.brokers is None:
            return {}
        security = ClientFile.read(str(self.brokers)).security
        found = {"security.protocol": security.protocol}
        for entry in parse(self.brokers.read_text()):
            if entry.name in CA:
                found[CA[entry.name]] = entry.value
            elif entry.name == "ssl.endpoint.identification.algorithm":
                found[entry.name] = entry.value or "none"
        if isinstance(security.login, SaslLogin):
            found["sasl.mechanisms"] = security.login.mechanism
            found["sasl.username"] = security.login.user
            found["sasl.password"] = security.login.password
        return found
