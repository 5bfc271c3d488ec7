"""A `HurtCluster` whose disks and links a schedule of faults hurts, too."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from quorate.cli.nodes.cluster_dir import Shape, free_ports
from quorate.cli.nodes.server import pair_of
from quorate.config.listeners import REPLICATION
from quorate.quorum.seams import Address
from tests.system.disk_faults import MARK, MODES, WORKS, DiskFaults
from tests.system.faults import Action
from tests.system.faulty_node import MAP, TRANSLATIONS
from tests.system.links import RULES, Links, write_translations
from tests.system.nodes import HurtCluster, broken_lines

CONTROLLERS, BROKERS = (1, 2, 3), (4, 5, 6)
LISTENER = re.compile(r"^listeners=(\w+)://(.+):(\d+)$", re.MULTILINE)


class FaultyCluster(HurtCluster):
    """Three controllers and three brokers with the disks and the transport of `faulty_node`.

    A node whose disk is full or fails may end by itself. Its log may say so, as long as it names
    the injected error."""

    disks_and_links = True

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._hurt_disks: dict[int, Action] = {}
        self._hurt_links: dict[tuple[int, tuple[int, ...]], Action] = {}
        self.directory.root.mkdir(parents=True)
        self._disks = DiskFaults(self.directory.root / MAP)
        self._links = Links(CONTROLLERS, BROKERS)

    def command(self, *arguments: str) -> list[str]:
        module = "tests.system.faulty_node"
        return [sys.executable, "-m", module, str(self.directory.root), *arguments]

    def start(self, *options: str) -> None:
        """Start a new cluster. `options` are overrides of keys, as `quorate up` takes them."""
        overrides = tuple(pair_of(each.removeprefix("--override=")) for each in options)
        self.directory.create(
            Shape(controllers=len(CONTROLLERS), brokers=len(BROKERS), port=0, overrides=overrides)
        )
        for_nodes, for_clients = {}, {}
        for node_id in (*CONTROLLERS, *BROKERS):
            found = LISTENER.search(self.directory.node_file(node_id).read_text())
            assert found is not None
            name, host, port = found.groups()
            for_nodes[node_id] = for_clients[node_id] = Address(host, int(port))
            if node_id in BROKERS:
                (free,) = free_ports(1)
                for_nodes[node_id] = Address(host, free)
                advertised = self._links.advertised(node_id)
                keys = {
                    "listeners": f"{name}://{host}:{port},{REPLICATION}://{host}:{free}",
                    "advertised.listeners": f"{name}://{advertised}",
                }
                self.directory.override(node_id, keys)
        self._links.connect(for_nodes, for_clients)
        write_translations(self._links, for_nodes, self.directory.root / TRANSLATIONS)
        super().start()

    def act(self, action: Action, node_id: int, peers: Sequence[int] = ()) -> None:
        if action in RULES:
            self._hurt_or_mend_links(action, node_id, tuple(peers))
        elif action in MODES:
            self.require_running(node_id)
            self._hurt_or_mend_disk(action, node_id)
        else:
            super().act(action, node_id)

    def require_running(self, node_id: int, *, told_to_end: bool = False) -> None:
        may_end = self._hurt_disks.get(node_id) in (Action.FULL_DISK, Action.FAILING_DISK)
        super().require_running(node_id, told_to_end=told_to_end or may_end)

    def require_nothing_broken(self) -> None:
        """Raise AssertionError as that of a `HurtCluster`, but allow what names the injected
        error."""
        for node_id in sorted(self._running):
            log = "\n".join(self._without_injected(self.node_log(node_id)))
            said = broken_lines(log)
            assert not said, f"node {node_id}: {said[0]}\n{self.logs()}"

    def stop(self) -> None:
        super().stop()
        self._links.close()

    @staticmethod
    def _without_injected(log: str) -> list[str]:
        return [line for line in log.splitlines() if MARK not in line]

    def _hurt_or_mend_links(self, action: Action, node_id: int, peers: tuple[int, ...]) -> None:
        hurt = self._hurt_links.pop((node_id, peers), None)
        if hurt is None:
            self._links.act(action, node_id, peers)
            self._hurt_links[node_id, peers] = action
            return
        noticed = self.await_first(hurt, lambda: self._links.act(hurt, node_id, peers) > 0)
        if self._links.act(action, node_id, peers) or noticed:
            self.effects[hurt] += 1

    def _hurt_or_mend_disk(self, action: Action, node_id: int) -> None:
        hurt = self._hurt_disks.pop(node_id, None)
        if hurt is not None and self.await_first(hurt, lambda: self._disks.get(node_id)[1] > 0):
            self.effects[hurt] += 1
        self._disks.set(node_id, MODES[action])
        if MODES[action] != WORKS:
            self._hurt_disks[node_id] = action

    def _start_again(self, node_id: int) -> None:
        """Start a node again, with a disk that works. A full or failing disk is noticed before."""
        if node_id in self._hurt_disks:
            self._hurt_or_mend_disk(Action.FAST_DISK, node_id)
        super()._start_again(node_id)
