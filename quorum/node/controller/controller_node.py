"""A running controller: the node core, the controller's rules with their shell, and its port.

The port speaks three protocols. Nodes send messages over WebSockets. Admin clients
(`--bootstrap-controller`) speak Kafka's protocol, and brokers forward such requests in envelopes.
Monitoring uses HTTP. The same rules decide the requests of brokers and of admin clients. The Raft
core answers the requests about voters and about the quorum (`controller_port.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from quorate.config.node_config import NodeConfig
from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.state.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    EnvelopeRequest,
)
from quorate.quorum.controller.state.result import AskReplicaLogs, Effect, ProbeBroker, Result
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.node.controller.broker_probes import BrokerProbes
from quorate.quorum.node.controller.controller_batch import Refusal
from quorate.quorum.node.controller.controller_port import ControllerPort
from quorate.quorum.node.controller.controller_settings import controller_settings
from quorate.quorum.node.controller.controller_shell import ControllerShell
from quorate.quorum.node.controller.controller_stages import controller_stages
from quorate.quorum.node.controller.own_registration import OwnRegistration
from quorate.quorum.node.controller.replica_log_requests import ReplicaLogRequests
from quorate.quorum.node.controller.request_bytes import node_request_bytes
from quorate.quorum.node.listening import log_listening, warn_if_exposed
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.node.opening.bootstrap_file import bootstrap_records
from quorate.quorum.node.peers.node_requests import REFUSED
from quorate.quorum.node.replica.committed_image import InstallImage
from quorate.quorum.node.unhandled import on_unhandled
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft.effects import Role, RoleChanged
from quorate.quorum.raft.messages import FetchRequest
from quorate.quorum.rpc.channel import Channel, Handler, Reply
from quorate.quorum.rpc.connector import ProbeResult
from quorate.quorum.rpc.hello import Peer
from quorate.quorum.rpc.kafka.node_authorizer import node_authorizer
from quorate.quorum.rpc.node_server import NodeServer
from quorate.quorum.seams import Address, Listener, Seams, Wire

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

RESIGN_TIMEOUT_MS = 2000
"""Maximum time that a stopping leader waits, after it has asked the voters to elect another. The
wait ends earlier when each voter has answered, or when this node learns of a later epoch."""
MAX_FRAME_BYTES = 32 << 20
"""Maximum size of a frame on the controller's port, unless socket.request.max.bytes is larger."""

logger = logging.getLogger("quorate.quorum.controller")

BROKER_REQUESTS = (
    BrokerRegistrationRequest,
    BrokerHeartbeatRequest,
    AlterPartitionRequest,
    AllocateProducerIdsRequest,
    AssignReplicasToDirsRequest,
)
REFUSALS = {Refusal.FAILED: ErrorCode.UNKNOWN_SERVER_ERROR}
"""Kafka's errors for refused requests of brokers. Every other refusal becomes NOT_CONTROLLER, also
UNKNOWN and TOO_LARGE."""


class ControllerNode:
    """The controller role of one node. Owned by the node's event loop.

    Invariant: the rules decide requests only on the active controller. Until then, and afterwards,
    the rules follow the committed image."""

    def __init__(self, core: NodeCore) -> None:
        self.core = core
        config, seams = core.config, core.seams
        self.authorizer = node_authorizer(config, seams.clock, lambda: core.image)
        self.rules = Controller(
            controller_settings(config, core.cluster_id, bootstrap_of(core)),
            seams.random,
            lambda: voter_ids(core),
            None if self.authorizer is None else self.authorizer.permits_of,
        )
        self.shell = ControllerShell(
            seams.clock,
            self.rules,
            core.replica,
            discard_uncommitted=lambda: core.committed_image.prepare(self._prepare_load),
            carry_out=lambda effect: self._start(effect),
            linger_ms=core.config["controller.quorum.append.linger.ms"],
        )
        self._replica_logs = ReplicaLogRequests(
            seams.clock, self.rules, self.shell, self._channel_of
        )
        self.port = ControllerPort(
            core,
            self.shell,
            self._replica_logs.ask_before,
            authorizer=self.authorizer,
            latest_image=lambda: self.rules.image,
        )
        handlers: dict[type, Handler] = {**core.raft_handlers()}
        handlers[FetchRequest] = self._discarding_old_fetches(handlers[FetchRequest])
        for request in BROKER_REQUESTS:
            handlers[request] = core.requests.guarded(self._broker_request)
        handlers[ControllerRegistrationRequest] = core.requests.guarded(self._register_controller)
        handlers[EnvelopeRequest] = core.requests.guarded(self.port.envelopes.handle)
        self._server = NodeServer(
            core.node_settings(handlers),
            self,
            known=lambda: {*core.image.brokers, *voter_ids(core)},
        )
        self._listeners: list[Listener] = []
        self._sessions: dict[Peer, tuple[int, int]] = {}  # (broker id, broker epoch) of a link
        self._probes = BrokerProbes(seams, self._probed)
        self._registration = OwnRegistration(core, self.shell, lambda: self.addresses)
        self._resigned = asyncio.Event()
        self._stopped = False
        core.listeners.role.append(self._role_changed)
        core.listeners.committed.append(self._committed)
        core.listeners.image.append(self._image_changed)
        core.listeners.prepare_load.append(self._prepare_load)
        core.listeners.resigned.append(self._resigned.set)
        core.listeners.failed.append(lambda error: self._stop_deciding())
        core.http_endpoints.not_ready.append(self._not_ready)
        core.http_endpoints.collectors.append(self._metrics)
        core.http_endpoints.life_cycle.recent = self.shell.recent_changes
        core.http_endpoints.life_cycle.parts["controller"] = partial(
            controller_stages, self.rules, self.shell
        )

    def _discarding_old_fetches(self, handle: Handler) -> Handler:
        """Return `handle`, which first closes older links of a replica that has lost its log.

        Such a replica says so in its fetches. A fetch that its previous process sent before the
        loss acknowledges records that are gone. It must not count if it arrives later, over a link
        that is still open."""

        def handle_fetch(peer: Peer, message: Any, reply: Reply) -> None:
            if message.catching_up:
                self._server.close_older(peer)
            handle(peer, message, reply)

        return handle_fetch

    async def start(self) -> None:
        """Listen on the controller's ports. The creator of the core starts the core."""
        accept = {
            Wire.NODE: self._server.accept,
            Wire.KAFKA: self.port.accept,
            Wire.HTTP: self.core.http_endpoints.accept,
        }
        config = self.core.config
        for listener in config.listeners.controller:
            address = Address(listener.host, listener.port)
            opened = await self.core.seams.transport.listen(
                address,
                accept,
                max_frame_bytes=max(MAX_FRAME_BYTES, config["socket.request.max.bytes"]),
                tls=self.core.tls.of(listener.name),
            )
            self._listeners.append(opened)
            log_listening(listener, opened.address, "nodes and admin clients")
            warn_if_exposed(listener, config)

    @property
    def addresses(self) -> list[Address]:
        """Return the addresses of the open ports, in the order of the configuration. Empty before
        `start`."""
        return [each.address for each in self._listeners]

    async def stop(self) -> None:
        """Resign, wait at most RESIGN_TIMEOUT_MS for the voters' answers, then close the ports.

        Only a leader waits, and only until Raft reports the end of the resignation. A successor may
        not be elected yet on return. The core stays open; its creator closes it."""
        self.core.replica.put(self.core.raft.resign)
        try:
            async with asyncio.timeout(RESIGN_TIMEOUT_MS / 1000):
                await self._resigned.wait()
        except TimeoutError:
            logger.warning(
                "no voter was elected within %d ms after this controller resigned: stopping anyway",
                RESIGN_TIMEOUT_MS,
            )
        await self.close()

    async def close(self) -> None:
        """Stop deciding requests, cancel the probes and close the ports."""
        self._stop_deciding()
        for listener in self._listeners:
            await listener.close()

    def _stop_deciding(self) -> None:
        """Refuse all requests that wait, and never become active again. A failed node must not
        decide on the image of a batch that it could not append."""
        self._stopped = True
        self._probes.close()
        self._registration.close()
        self.shell.deactivate()

    def _not_ready(self) -> Iterator[str]:
        if self.core.replica.raft.role is Role.LEADER and not self.shell.active:
            yield "it leads the quorum and is not the active controller yet"

    def _metrics(self) -> Iterator[Metric]:
        from quorate.quorum.node.controller.controller_metric_table import REQUEST_TIME
        from quorate.quorum.node.controller.controller_metrics import controller_metrics
        from quorate.quorum.watch.authorizer import authorizer_metrics
        from quorate.quorum.watch.request_times import request_times

        yield from controller_metrics(self.core, self.rules, self.shell)
        yield from authorizer_metrics(self.authorizer, "controller", self.rules.image)
        yield REQUEST_TIME.each(request_times([self.port.routes]))

    # -- changes of the metadata -----------------------------------------------------------------

    def _role_changed(self, effect: RoleChanged) -> None:
        if effect.role is not Role.LEADER:
            self.shell.deactivate()
        self._registration.leader_changed()

    def _committed(self, high_watermark: int) -> None:
        image = self.shell.committed(high_watermark)
        if image is not None and not self.core.config.is_broker:
            self.core.committed_image.adopt(image)  # A broker in this process needs the deltas.
            self.port.configure(image)
            self._registration.follow(image)
        self._activate_when_ready()

    def _image_changed(self, image: MetadataImage, delta: ImageDelta) -> None:
        """Let the rules follow the committed image. The rules of the active controller are ahead of
        it, because they followed the records when these were appended."""
        if delta.client_quotas:
            self.port.apply_quotas(image)
        self.port.configure(image)
        self._registration.follow(image)
        if not self.shell.active:
            self._carry_out(self.rules.replayed(image, delta))
            self._activate_when_ready()

    def _prepare_load(self, image: MetadataImage) -> IncrementalWork[InstallImage]:
        install = yield from self.rules.prepare_load(image)

        def install_image() -> None:
            index = self.rules.index
            self._carry_out(install())
            self.port.apply_quotas(image)
            self.port.configure(image)
            self._registration.follow(image)
            self._activate_when_ready()
            self.core.committed_image.release(index.emptied())

        return install_image

    def _activate_when_ready(self) -> None:
        """Activate the controller if it leads, its own leader change record is committed, and all
        records before that are replayed. Before that, decisions would rest on an old image."""
        raft, replayed = self.core.replica.raft, self.core.committed_image
        ready = raft.role is Role.LEADER and raft.high_watermark == self.core.log.end_offset
        ready = ready and not (self._stopped or self.shell.active)
        if ready and replayed.caught_up_with(raft.high_watermark):
            self.shell.activate(self.core.image, raft.epoch, in_transaction=replayed.in_transaction)

    # -- requests of brokers ---------------------------------------------------------------------

    def _broker_request(self, peer: Peer, message: Any, reply: Reply) -> None:
        if isinstance(message, BrokerHeartbeatRequest):
            now_ms = self.core.clock.now_ms()
            self.rules.contact(message.broker_id, message.broker_epoch, now_ms=now_ms)
            self._link_belongs_to(peer, message.broker_id, message.broker_epoch)

        def answer(response: Any) -> None:
            if isinstance(response, Refusal):
                error = REFUSALS.get(response, ErrorCode.NOT_CONTROLLER)
                reply(REFUSED[type(message)](error))
                return
            if isinstance(response, BrokerRegistrationResponse) and response.broker_epoch >= 0:
                self._link_belongs_to(peer, message.broker_id, response.broker_epoch)
            reply(response)

        self.shell.submit(message, answer, size_bytes=node_request_bytes(message))

    def _register_controller(self, peer: Peer, message: Any, reply: Reply) -> None:
        self._registration.register(message, reply)

    def _link_belongs_to(self, peer: Peer, broker_id: int, broker_epoch: int) -> None:
        """Note that the link of `peer` belongs to this registration of the broker."""
        session = (broker_id, broker_epoch)
        if peer.node_id == broker_id and self._sessions.get(peer) != session:
            self._sessions[peer] = session
            self._carry_out(self.rules.connected(*session, peer.address.host))

    def on_peer_up(self, channel: Channel) -> None:
        """Handle a completed handshake of a node that has connected to this controller."""
        self.core.on_peer(channel)

    def on_peer_down(self, channel: Channel) -> None:
        """Handle the end of a link. If it belonged to a broker's registration, it is a hint that
        the broker's process has died."""
        session = self._sessions.pop(channel.peer, None)
        if session is not None and not self.core.failed:
            self._carry_out(self.rules.connection_lost(*session))

    # -- hints -----------------------------------------------------------------------------------

    def _carry_out(self, result: Result) -> None:
        for effect in result.effects:
            self._start(effect)

    def _start(self, effect: Effect) -> None:
        if isinstance(effect, AskReplicaLogs):
            self._replica_logs.ask(effect)
        else:
            self._probes.start(effect)

    def _channel_of(self, broker_id: int, broker_epoch: int) -> Channel | None:
        """Return the newest link that belongs to this registration of the broker, or None."""
        links = (
            channel
            for channel in reversed(self._server.channels)
            if self._sessions.get(channel.peer) == (broker_id, broker_epoch)
        )
        return next(links, None)

    def _probed(self, effect: ProbeBroker, result: ProbeResult) -> None:
        """Report the result of a probe to the rules. Only a refusal can change the metadata."""
        if result is ProbeResult.ALIVE:
            self._carry_out(self.rules.probe_succeeded(effect))
        elif result is ProbeResult.UNREACHABLE:
            self._carry_out(self.rules.probe_failed(effect))
        elif self.shell.active:
            self.shell.handle_event(
                lambda now_ms, _: self.rules.probe_refused(effect, now_ms=now_ms)
            )


def bootstrap_of(core: NodeCore) -> Sequence[MetadataRecord]:
    """Return the records of `bootstrap.checkpoint` if the metadata log may be empty. Block. Raise
    StorageError if the file is damaged."""
    if core.image.last.offset >= 0:
        return ()
    return bootstrap_records(core.seams.disk, core.config.metadata_log_dir)


def voter_ids(core: NodeCore) -> list[int]:
    """Return the ids of the quorum's voters, committed or not."""
    return [voter.voter_id for voter in core.voters]


async def run(config: NodeConfig, seams: Seams, stop: asyncio.Event) -> None:
    """Run a controller until `stop` is set. If the node fails, raise the failure.

    The files and the lock stay open after a failure; the process is expected to end. Raise the
    errors of `NodeCore` if the directory cannot be opened. This function replaces the exception
    handler of the event loop (`unhandled.py`)."""
    failure: list[BaseException] = []

    def failed(error: BaseException) -> None:
        failure.append(error)
        stop.set()

    core = NodeCore(config, seams, failed)
    node = ControllerNode(core)
    asyncio.get_running_loop().set_exception_handler(partial(on_unhandled, core))
    core.tls.reload_on_hangup()
    try:
        await node.start()
        core.start()
        core.http_endpoints.measures.loop_lag.start()
        await stop.wait()
        if not failure:
            await node.stop()
    finally:
        core.http_endpoints.measures.loop_lag.close()
        core.close()
        await node.close()
    if failure:
        raise failure[0]
    core.release()
