"""The quotas of a broker's clients: the rates that all its client ports share, and their metering.

`apply` follows the metadata. While no quota is set, the ports are not metered, and new connections
are not counted.
"""

from __future__ import annotations

from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.quotas.client_quotas import ClientQuotas
from quorate.quorum.quotas.connection_rates import ConnectionRates
from quorate.quorum.quotas.sampled_rate import Windows
from quorate.quorum.rpc.kafka.connection_quotas import ConnectionQuotas
from quorate.quorum.rpc.kafka.metering import Metering


class BrokerQuotas:
    """The quotas of one broker. The event loop owns it."""

    def __init__(self, windows: Windows, connections: ConnectionQuotas) -> None:
        """Create quotas that bound nothing. `connections` are those of the client ports."""
        self.clients = ClientQuotas(windows)
        self.connection_rates = ConnectionRates(windows)
        self._connections = connections
        self._metering: list[Metering] = []

    def add(self, metering: Metering) -> None:
        """Add the metering of a client port. The broker adds its ports at its start."""
        self._metering.append(metering)
        metering.follow()

    def apply(self, image: MetadataImage) -> None:
        """Apply the client quotas of `image`. Histories of clients stay."""
        quotas = image.client_quotas
        self.clients.configure(quotas)
        self.connection_rates.configure(quotas)
        enabled = self.connection_rates.enabled
        self._connections.rates = self.connection_rates if enabled else None
        for each in self._metering:
            each.follow()
