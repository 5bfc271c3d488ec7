"""A running broker: the node core, the replicas, the lifecycle, the groups, and the ports.

The broker applies metadata only after the controller has confirmed that it has caught up with its
own registration. Earlier images are older than the broker's own state, and applying one could undo
changes. A process that is a controller too shares one node core with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from quorate.broker.controller.alter_partition_sender import AlterPartitionSender
from quorate.broker.controller.assignment_sender import AssignmentSender
from quorate.broker.controller.controller_client import ControllerClient
from quorate.broker.controller.lifecycle import BrokerLifecycle, LifecycleSettings, State
from quorate.broker.dynamic_configs import DynamicConfigs
from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.groups.settings import GroupSettings
from quorate.broker.isr_proposals import proposals
from quorate.broker.kafka.broker_quotas import BrokerQuotas
from quorate.broker.kafka.client_port import client_port
from quorate.broker.kafka.cluster.suspects import Suspects
from quorate.broker.kafka.records.producer_ids import ProducerIds
from quorate.broker.kafka.sasl_listener import close_without_credential, token_listeners
from quorate.broker.kafka.services import Services
from quorate.broker.node_port import node_port
from quorate.broker.readiness import broker_reasons
from quorate.broker.registration_request import registration_request
from quorate.broker.replication.directories.offline_directories import BrokerDirectories
from quorate.broker.replication.partitions.settings import ReplicationSettings
from quorate.broker.replication.replica_logs import replica_logs_handler
from quorate.broker.replication.replica_manager import ReplicaManager
from quorate.broker.topic_settings import EffectiveTopicSettings
from quorate.quorum.controller.state.messages import BrokerRegistrationRequest, ReplicaLogsRequest
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.difference import differing
from quorate.quorum.metadata.image import BROKER_RESOURCE, MetadataImage, Partition
from quorate.quorum.node.dynamic_settings import DynamicSettings
from quorate.quorum.node.listening import log_listening, warn_if_exposed
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.node.replica.committed_image import InstallImage
from quorate.quorum.quotas.sampled_rate import Windows
from quorate.quorum.raft.effects import RoleChanged
from quorate.quorum.rpc.kafka.connection_quotas import ConnectionLimits, ConnectionQuotas
from quorate.quorum.rpc.kafka.node_authorizer import node_authorizer
from quorate.quorum.rpc.kafka.server import KafkaServer
from quorate.quorum.sasl.unknown_users import UnknownUsers
from quorate.quorum.seams import Accept, Address, Link, LinkHandler, Listener, Wire
from quorate.quorum.watch.quorum_reach import lost_quorum

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CONTROLLED_SHUTDOWN_TIMEOUT_MS = 30_000
"""The longest wait for the controller's permission to stop."""

logger = logging.getLogger("quorate.broker")


class BrokerNode:
    """A broker in this process. The event loop owns it.

    Life: `start` opens the ports and begins the registration, `stop` is the controlled shutdown,
    `close` stops without one, as a crash would: the next start recovers the logs."""

    def __init__(self, core: NodeCore) -> None:
        """Make the parts of a broker on a node core, and register its callbacks there. Nothing runs
        yet. Blocks to read the keys of token providers. Raise ConfigError if they cannot be
        used."""
        self.core = core
        config, seams = core.config, core.seams
        silence_ms = config["controller.quorum.request.timeout.ms"]
        self.client = ControllerClient(seams.clock, core.links, silence_ms, core.replica.fetch_now)
        self.isr_sender = AlterPartitionSender(
            seams.clock,
            self.client,
            config.node_id,
            self._broker_epoch,
            config["controller.socket.timeout.ms"],
        )
        self.assignments = AssignmentSender(
            seams.clock,
            self.client,
            config.node_id,
            self._broker_epoch,
            config["controller.socket.timeout.ms"],
        )
        replication = ReplicationSettings.of(config, config.log_dirs, core.tls.proof)
        assert config.listeners.replication is not None
        self._replication_listener = config.listeners.replication.name
        dynamic = DynamicSettings(config)
        self.suspects = Suspects(
            seams.clock,
            lambda: self.replicas.registry.image,
            enabled=config["quorate.hints.enable"],
        )
        self.replicas = ReplicaManager(
            seams,
            replication,
            config.node_id,
            topic_settings=EffectiveTopicSettings(config, replication, dynamic),
            propose=self.isr_sender.propose,
            broker_epoch=self._broker_epoch,
            address_of=self._replication_address,
            on_failure=core.fail,
            on_link_lost=self.suspects.link_lost,
            memory=core.resources.memory,
            directories=BrokerDirectories(
                ids=core.directories.log_dirs,
                metadata_dir=config.metadata_log_dir,
                on_offline=self._directory_failed,
                assign=self.assignments.assign,
            ),
        )
        self.groups = GroupCoordinator(
            seams.clock, seams.random, GroupSettings.of(config), self.replicas, config.node_id
        )
        self.connections = ConnectionQuotas(seams.clock, ConnectionLimits.of(config))
        self.quotas = BrokerQuotas(Windows.of(config), self.connections)
        self.unknown_users = UnknownUsers(seams.random)
        self._dynamic_configs = DynamicConfigs(
            dynamic, self.connections, self.replicas, self.unknown_users, core.tls.configure
        )
        self.authorizer = node_authorizer(
            core.config, seams.clock, lambda: self.replicas.registry.image
        )
        self.token_listeners = token_listeners(config, seams.clock)
        self.services = self._services(core)
        self.lifecycle: BrokerLifecycle | None = None
        self.client_ports: list[KafkaServer] = []
        self._listeners: dict[str, Listener] = {}
        self._applying = False
        self._serving = False
        self._shut_down = asyncio.Event()
        self._listen_to(core)

    def _services(self, core: NodeCore) -> Services:
        """Return the parts that the handlers of the client ports use."""
        return Services(
            config=core.config,
            clock=core.seams.clock,
            cluster_id=core.cluster_id,
            image=lambda: self.replicas.registry.image,
            replicas=self.replicas,
            forwarder=self.client,
            producer_ids=ProducerIds(self.client, core.config.node_id, self._broker_epoch),
            suspects=self.suspects,
            quotas=self.quotas,
            groups=self.groups,
            connections=self.connections,
            resources=core.resources,
            features=core.features,
            lost_quorum=partial(lost_quorum, core),
            random=core.seams.random,
            unknown_users=self.unknown_users,
            try_tls=core.tls.try_out,
            authorizer=self.authorizer,
            verify={name: each.verify for name, each in self.token_listeners.items()},
        )

    def _listen_to(self, core: NodeCore) -> None:
        """Register the callbacks of this broker on the node core."""
        core.link_handlers[ReplicaLogsRequest] = core.requests.guarded(
            replica_logs_handler(self.replicas.registry, self._broker_epoch)
        )
        core.listeners.role.append(self._role_changed)
        core.listeners.links.append(self.client.links_changed)
        core.listeners.image.append(self._image_changed)
        core.listeners.prepare_load.append(self._prepare_load)
        core.listeners.survives.append(self.replicas.survives)
        core.listeners.failed.append(self.replicas.node_failed)
        core.http_endpoints.not_ready.append(
            lambda: broker_reasons(core, self.lifecycle, self.replicas.unopened)
        )
        core.http_endpoints.collectors.append(self._metrics)
        life_cycle = core.http_endpoints.life_cycle
        self.replicas.follow_acted(life_cycle.on_acted)
        life_cycle.parts["proposals"] = lambda: proposals(self.isr_sender, core.image)

    # --- life

    async def start(self) -> None:
        """Open the ports and begin the registration. The caller then starts the node core.

        Blocks to list the log directory. On return the broker is not registered yet. Until its logs
        are open (`_serve`), connections to the client ports are closed immediately. Raise
        the transport's error if a port cannot be bound."""
        self.replicas.start()
        self.groups.start()
        for tokens in self.token_listeners.values():
            tokens.refresher.start()
        config, seams = self.core.config, self.core.seams
        max_frame_bytes = config["socket.request.max.bytes"]
        node = self.core.node_settings({})
        replication = config.listeners.replication
        assert replication is not None
        ports = {}
        for each in config.listeners.client:
            port = client_port(self.services, each.name)
            self.client_ports.append(port)
            ports[each] = {Wire.KAFKA: self._once_serving(port.accept)}
        accepts = {
            **ports,
            replication: node_port(
                node,
                self.replicas.replica_sessions.fetch,
                self.core.http_endpoints.accept,
                self.core.resources,
            ),
        }
        for listener, accept in accepts.items():
            address = Address(listener.host, listener.port)
            opened = await seams.transport.listen(
                address,
                accept,
                max_frame_bytes=max_frame_bytes,
                tls=self.core.tls.of(listener.name),
            )
            self._listeners[listener.name] = opened
            serves = "other nodes" if listener is replication else "clients"
            log_listening(listener, opened.address, serves)
        warn_if_exposed(replication, config)
        self.lifecycle = BrokerLifecycle(
            seams.clock,
            seams.random,
            self.client,
            LifecycleSettings.of(config),
            self._registration(),
            on_state=self._state_changed,
            on_failed=self.core.fail,
        )
        self.lifecycle.start()

    def address(self, listener: str) -> Address:
        """Return the address to which a listener is bound, with its actual port. Raise KeyError
        unless the listener is open."""
        return self._listeners[listener].address

    @property
    def running(self) -> bool:
        """Return True from the first unfencing until the shutdown begins, also while the broker is
        fenced again."""
        return self.lifecycle is not None and self.lifecycle.state is State.RUNNING

    async def stop(self) -> None:
        """Stop in a controlled way: give up the leaderships, close the ports, then flush and close
        all logs. Call it only after `start`.

        Raise the error of the last step. If the controller does not permit the shutdown within
        CONTROLLED_SHUTDOWN_TIMEOUT_MS, or controlled.shutdown.enable is false, skip the first
        step."""
        assert self.lifecycle is not None
        if self.core.config["controlled.shutdown.enable"]:
            self.lifecycle.begin_shutdown()
            try:
                async with asyncio.timeout(CONTROLLED_SHUTDOWN_TIMEOUT_MS / 1000):
                    await self._shut_down.wait()
            except TimeoutError:
                logger.warning(
                    "the controller did not permit the controlled shutdown within %d ms; the "
                    "broker stops without it",
                    CONTROLLED_SHUTDOWN_TIMEOUT_MS,
                )
        await self.close()
        closed: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        self.replicas.close(closed.set_result)
        error = await closed
        if error is not None:
            raise error

    async def close(self) -> None:
        """Close the ports and cancel all timers and waiting requests. The logs are neither flushed
        nor closed. It may be called again."""
        if self.lifecycle is not None:
            self.lifecycle.close()
        for tokens in self.token_listeners.values():
            tokens.refresher.close()
        self.client.close()
        self.isr_sender.close()
        self.assignments.close()
        self.groups.close()
        self.replicas.stop()
        listeners, self._listeners = self._listeners, {}
        for listener in listeners.values():
            await listener.close()

    # --- callbacks of the node core

    def _role_changed(self, effect: RoleChanged) -> None:
        self.client.leader_changed(effect.leader_id)

    def _image_changed(self, image: MetadataImage, delta: ImageDelta) -> None:
        if self._applying:
            self.replicas.apply(image, delta)
            self.groups.apply(image, delta)
            self.suspects.image_changed(delta)
            if delta.client_quotas:
                self.quotas.apply(image)
            close_without_credential(self.services.gates, delta)
            if any(kind == BROKER_RESOURCE for kind, _ in delta.configs):
                self._dynamic_configs.apply(image)
        if self.lifecycle is None:
            return
        self.lifecycle.metadata_replayed(image.last.offset)
        me = delta.brokers.get(self.core.me.id)
        if me is not None and me.new is not None and me.new.fenced:
            self.lifecycle.fenced()

    def _prepare_load(self, image: MetadataImage) -> IncrementalWork[InstallImage]:
        """Return, in steps, the function that applies a loaded snapshot to this broker."""
        delta = yield from differing(self.core.image, image, self._concerns)
        return lambda: self._image_changed(image, delta)

    def _prepare_first_image(self, image: MetadataImage) -> IncrementalWork[InstallImage]:
        """Return, in steps, the function that applies the first image: everything in it that
        concerns this broker."""
        delta = yield from differing(MetadataImage(), image, self._concerns)

        def install() -> None:
            self._applying = True
            self.replicas.apply(image, delta)
            self.groups.apply(image, delta)
            self._dynamic_configs.apply(image)
            self.quotas.apply(image)
            self.replicas.when_settled(lambda: self.core.tls.when_settled(self._serve))

        return install

    def _concerns(self, partition: Partition) -> bool:
        return self.core.me.id in partition.replicas

    def _state_changed(self, state: State) -> None:
        if state is State.RECOVERY:
            self.core.committed_image.prepare(self._prepare_first_image)
        elif state is State.SHUTTING_DOWN:
            self._shut_down.set()

    def _serve(self) -> None:
        assert self.lifecycle is not None
        self._serving = True
        self.lifecycle.logs_loaded()

    def _once_serving(self, accept: Accept) -> Accept:
        """Return `accept`, but close each connection until the broker serves.

        Before that, a client would learn that no topic exists. After a closed connection it asks
        another broker. Kafka binds these ports only when it serves; here the registration needs the
        ports."""

        def accept_or_close(link: Link) -> LinkHandler:
            handler = accept(link)
            if not self._serving:
                link.close()
            return handler

        return accept_or_close

    def _metrics(self) -> Iterator[Metric]:
        from quorate.broker.metrics.scrape import broker_metrics

        return broker_metrics(self)

    def _directory_failed(self, path: str) -> None:
        if self.lifecycle is not None:  # else the registration leaves the directory out
            self.lifecycle.directory_failed(self.replicas.logs.ids[path])

    # --- identity

    def _broker_epoch(self) -> int:
        return -1 if self.lifecycle is None else self.lifecycle.broker_epoch

    def _replication_address(self, broker_id: int) -> Address | None:
        broker = self.core.image.brokers.get(broker_id)
        endpoint = broker.endpoint(self._replication_listener) if broker is not None else None
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

    def _registration(self) -> BrokerRegistrationRequest:
        logs = self.replicas.logs
        return registration_request(
            self.core,
            {name: each.address.port for name, each in self._listeners.items()},
            log_dirs=tuple(sorted(logs.ids[path] for path in logs.online)),
            previous_broker_epoch=logs.previous_broker_epoch,
        )
