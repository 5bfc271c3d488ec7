"""The file of --command-config for a command that connects in several ways or processes."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.cli.client.client_properties import ClientSecurity, client_security
from quorate.cli.client.options import read_client_config


@dataclass(frozen=True, slots=True)
class ClientFile:
    """The path of the file, and the security that it demands. Without a file there is none."""

    path: str | None = None
    security: ClientSecurity = ClientSecurity()

    @classmethod
    def read(cls, path: str | None) -> ClientFile:
        """Read the file. Blocks. Raise Refused as `client_security` does."""
        return cls(path, client_security(read_client_config(path)))
