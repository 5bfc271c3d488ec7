"""The `quorate` command with faults in its nodes: `python -m tests.system.faulty_node DIR up ...`.

The nodes of this process, and those that it forks, use the disk of `disk_faults` with the map
DIR/disks. They open connections to proxies only, as DIR/links.json translates the addresses. A node
ends that wants to connect to an address that has no proxy.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import ClassVar

from quorate.config.node_config import NodeConfig
from quorate.quorum.log.disks import disk
from quorate.quorum.rpc import transport
from quorate.quorum.seams import Accept, Address, DialTls, Link, Wire
from tests.system.disk_faults import GATE, DiskFaults, FaultyDisk, FaultyFile
from tests.system.proxies import HOST

MAP, TRANSLATIONS = "disks", "links.json"


class ProxiedTransport(transport.AioTransport):
    """Connects to the node's own proxy of each address."""

    translations: ClassVar[dict[str, int]] = {}

    async def connect(
        self,
        address: Address,
        wire: Wire,
        accept: Accept,
        *,
        max_frame_bytes: int,
        timeout_ms: int,
        tls: DialTls | None = None,
    ) -> Link:
        proxy = Address(HOST, self.translations[str(address)])
        return await super().connect(
            proxy, wire, accept, max_frame_bytes=max_frame_bytes, timeout_ms=timeout_ms, tls=tls
        )


def install(directory: Path) -> None:
    """Replace the disk and the transport of the nodes of this process."""
    disk.OsFile, disk.OsDisk = FaultyFile, FaultyDisk  # type: ignore[misc, attr-defined]
    transport.AioTransport = ProxiedTransport  # type: ignore[misc]
    from quorate.cli.nodes import node_process

    serve = node_process.serve

    async def serve_with_faults(config: NodeConfig, faults: Path | None) -> None:
        ProxiedTransport.translations = json.loads((directory / TRANSLATIONS).read_text())[
            str(config.node_id)
        ]
        GATE.faults, GATE.node_id = DiskFaults(directory / MAP), config.node_id
        await serve(config, faults)

    node_process.serve = serve_with_faults


if __name__ == "__main__":
    install(Path(sys.argv.pop(1)))
    from quorate.cli.main import main

    main(prog_name="quorate")
