"""The TLS of a node: that of its listeners, and that of its connections to other nodes.

Certificates are read again while the node runs: after a change of their files, after a change of
their dynamic configs (`config/dynamic_tls_keys.py`), and on request. One task does this, and the
trials of changes that an operator asks for.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quorate.config.dynamic_tls_keys import listeners_of, with_dynamic_tls
from quorate.config.key import ConfigError
from quorate.config.node_config import NodeConfig
from quorate.config.node_tls import demands_tls, dials_tls
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import BROKER_RESOURCE, MetadataImage
from quorate.quorum.node.peers.tls_trials import Done, TlsTrials
from quorate.quorum.rpc.delivery import raise_failure
from quorate.quorum.rpc.node_identity import NodeProof, named_nodes, node_uri
from quorate.quorum.rpc.tls.dialing_transport import DialingTransport
from quorate.quorum.rpc.tls.listener_tls import ListenerTls, listener_settings, tls_listeners
from quorate.quorum.rpc.tls.settings import TlsSettings
from quorate.quorum.seams import Clock, Seams
from quorate.quorum.watch.endpoints import HttpEndpoints

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CHECK_INTERVAL_S = 5.0
"""The time between two looks at the files of keystores and truststores."""


class NodeTls:
    """The listeners of a node that have TLS. The event loop owns it."""

    def __init__(self, config: NodeConfig, cluster_id: str, clock: Clock) -> None:
        """Read the stores of the listeners that have TLS. Blocks. Raise ConfigError if one cannot
        be used, or if the certificate of a listener for nodes does not name this node."""
        of = config.listeners
        listeners = (*of.client, *of.controller, *([of.replication] if of.replication else []))
        self._listeners = tls_listeners(config, listeners, clock)
        for_nodes = [self._listeners[name] for name in config.node_listeners if self.of(name)]
        for each in for_nodes:
            require_uri(each, node_uri(cluster_id, config.node_id))
        self._dial = for_nodes[0] if dials_tls(config) else None
        self.proof = NodeProof(cluster_id, required=demands_tls(config))
        """The rule by which other nodes prove their ids."""
        self._config = config
        self._trials = TlsTrials()
        self._settled: list[Callable[[], None]] = []
        """The callbacks of `when_settled`, at most one for each role of the node."""
        self._look = asyncio.Event()
        self._again = False
        self._task: asyncio.Task[None] | None = None

    def dialing(self, seams: Seams) -> Seams:
        """Return `seams`, with TLS for the connections that this node opens if it has any."""
        if self._dial is None:
            return seams
        return replace(seams, transport=DialingTransport(seams.transport, self._dial))

    def __bool__(self) -> bool:
        """Return True if a listener has TLS."""
        return bool(self._listeners)

    def of(self, listener: str) -> ListenerTls | None:
        """Return the TLS of a listener, or None if it has none."""
        return self._listeners.get(listener)

    def report_to(self, endpoints: HttpEndpoints) -> None:
        """Add the metrics of the listeners to /metrics. A node without TLS has none."""
        if self._listeners:
            endpoints.collectors.append(self._metrics)

    def start(self) -> None:
        """Read stores again when their files change, until `close`. A node without TLS starts no
        task."""
        if self._listeners:
            self._task = asyncio.get_running_loop().create_task(self._follow())
            self._task.add_done_callback(raise_failure)

    def close(self) -> None:
        """Stop reading stores."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def reload_on_hangup(self) -> None:
        """Read all stores again after each SIGHUP. Without TLS, the signal keeps its meaning."""
        if self._listeners:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.reload)

    def reload(self) -> None:
        """Read all stores again soon, also those whose files have not changed."""
        self._again = True
        self._look.set()

    # --- dynamic configs

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Use the dynamic keys of TLS in `settings`, the typed settings of this node, soon. A
        listener that cannot use them keeps its certificate, with an error in the log."""
        if not self._listeners:
            return
        for name, changed in self._of(settings, self._listeners):
            self._listeners[name].configure(changed)
        self._look.set()

    def image_changed(self, image: MetadataImage, delta: ImageDelta) -> None:
        """Look at the files of the stores soon if a config of brokers was set. As in Kafka, the
        value that a key has already makes a node read its file again."""
        if self._listeners and any(kind == BROKER_RESOURCE for kind, _ in delta.configs):
            self._look.set()

    def when_settled(self, done: Callable[[], None]) -> None:
        """Call `done` when the settings of the last `configure` are in use, or refused."""
        if all(each.settled for each in self._listeners.values()):
            done()
        else:
            self._settled.append(done)

    def try_out(self, settings: Mapping[str, Any], names: Iterable[str], done: Done) -> None:
        """Check whether the listeners of the dynamic keys `names` can use `settings`. Change
        nothing. Call `done` later, once, with None or with the reason against the settings.

        Raise ConfigError if a listener has no TLS, or if too many changes wait for their check."""
        found = self._of(settings, listeners_of(self._config, names))
        self._trials.add([(self._listeners[name], of) for name, of in found], done)
        self._look.set()

    def _of(
        self, settings: Mapping[str, Any], names: Iterable[str]
    ) -> Iterator[tuple[str, TlsSettings]]:
        """Yield the name and the settings of each of the listeners `names`."""
        config = with_dynamic_tls(self._config, settings)
        for name in names:
            for_nodes = name in config.node_listeners
            yield name, listener_settings(config, name, for_nodes=for_nodes)

    async def _follow(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_INTERVAL_S):
                    await self._look.wait()
            self._look.clear()
            await self._trials.run()
            again, self._again = self._again, False
            for each in self._listeners.values():
                await each.reload(also_unchanged=again)
            settled, self._settled = self._settled, []
            for done in settled:
                self.when_settled(done)

    def _metrics(self) -> Iterator[Metric]:
        from quorate.quorum.watch.tls import tls_metrics

        return tls_metrics(self._listeners.values())


def require_uri(listener: ListenerTls, uri: str) -> None:
    """Raise ConfigError if the certificate of a listener for nodes does not name this node,
    and no other one."""
    shown = named_nodes(listener.uris)
    if uri not in shown:
        raise ConfigError(
            f"listener {listener.listener}: its certificate lacks the URI {uri}, by which other "
            "nodes know this one. `quorate certs node --cluster-id` makes one that has it"
        )
    if len(shown) > 1:
        raise ConfigError(
            f"listener {listener.listener}: its certificate is for {len(shown)} nodes, so that no "
            f"node would believe it. Use one with the URI {uri} only"
        )
