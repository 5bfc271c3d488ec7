"""Admin requests in Kafka's protocol: those that brokers forward and those of admin clients.

An admin client that is connected to this port gets ApiVersions, DescribeCluster and DescribeConfigs
from this node's own state. Every other request, forwarded (`envelopes.py`) or not, ends in `_ask`.
It answers DescribeQuorum from Raft's state if this node leads the quorum. It gives requests about
voters to `voter_admin.py`, and all others to the controller's rules. The answer has Kafka's bytes
in the version of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any

from quorate.quorum.authorization.apis import CONTROLLER_CHECKS, FORWARDED_CHECKS
from quorate.quorum.controller.clients.authorized import refusal_of
from quorate.quorum.controller.state.context import Caller
from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.incremental_work import finished
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.node.controller.controller_batch import Refusal
from quorate.quorum.node.controller.controller_shell import ControllerShell
from quorate.quorum.node.controller.decided_apis import RULED, VOTER_APIS
from quorate.quorum.node.controller.describe_configs import DescribeConfigsHandler
from quorate.quorum.node.controller.envelopes import REFUSALS, Envelopes
from quorate.quorum.node.controller.request_bytes import client_request_bytes
from quorate.quorum.node.controller.unchecked_tls import unchecked_tls
from quorate.quorum.node.controller.voter_admin import VoterAdmin
from quorate.quorum.node.dynamic_settings import DynamicSettings
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.authorized_operations import CLUSTER_OPERATIONS, NOT_REQUESTED
from quorate.quorum.protocol.codec import encode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.error_responses import ERROR_RESPONSES
from quorate.quorum.protocol.wire import Message
from quorate.quorum.quotas.client_quotas import ClientQuotas
from quorate.quorum.quotas.sampled_rate import Windows
from quorate.quorum.rpc.kafka.acls import ACL_HANDLERS, without_authorizer
from quorate.quorum.rpc.kafka.api_versions import ApiVersionsHandler
from quorate.quorum.rpc.kafka.authorization import PortAuthorizer
from quorate.quorum.rpc.kafka.clear_credentials import ClearCredentials
from quorate.quorum.rpc.kafka.connection import SLICED_ABOVE_BYTES
from quorate.quorum.rpc.kafka.connection_quotas import (
    OTHERS_FILES,
    ConnectionLimits,
    ConnectionQuotas,
)
from quorate.quorum.rpc.kafka.describe_acls import DescribeAclsHandler
from quorate.quorum.rpc.kafka.metering import Metering
from quorate.quorum.rpc.kafka.sasl import sasl_handlers
from quorate.quorum.rpc.kafka.server import (
    Handler,
    KafkaServer,
    RequestContext,
    Route,
    ServerSettings,
)
from quorate.quorum.seams import Link, LinkHandler

if TYPE_CHECKING:
    from quorate.quorum.protocol.schemas.cluster import (
        DescribeClusterRequest,
        DescribeQuorumRequest,
    )
    from quorate.quorum.raft.description import QuorumDescription, ReplicaDescription

BROKERS, CONTROLLERS = 1, 2  # endpoint types of KIP-919
ENDPOINT_TYPE_SINCE = 1
"""The first version of DescribeCluster with a field for the endpoint type."""
AskBefore = Callable[[Message, Callable[[], None]], None]
"""Gets a request, and a function to call once, now or later (`ReplicaLogRequests.ask_before`)."""


class ControllerPort:
    """The Kafka port of a controller (KIP-919).

    Owned by the node's event loop. Requests of links that are closed meanwhile are decided all the
    same; their answers are dropped."""

    def __init__(
        self,
        core: NodeCore,
        shell: ControllerShell,
        ask_before: AskBefore,
        *,
        authorizer: PortAuthorizer | None = None,
        latest_image: Callable[[], MetadataImage] | None = None,
    ) -> None:
        """`ask_before` calls back when the rules have what they need to know before a request.
        `latest_image` returns the image on which the rules decide."""
        self._authorizer = authorizer
        self._latest_image = latest_image or (lambda: core.image)
        self._ask_before = ask_before
        self._core = core
        self._shell = shell
        self._voters = VoterAdmin(core)
        handlers: dict[int, Handler] = {
            ApiKey.DESCRIBE_CLUSTER: self._describe_cluster,
            **sasl_handlers(core.seams.clock),
            ApiKey.DESCRIBE_CONFIGS: DescribeConfigsHandler(
                node=core.config, image=lambda: core.image
            ).handle,
        }
        if authorizer is None:
            handlers |= ACL_HANDLERS
        else:
            handlers[ApiKey.DESCRIBE_ACLS] = DescribeAclsHandler(lambda: core.image).handle
            handlers = authorizer.guarded(handlers, CONTROLLER_CHECKS)
            handlers[ApiKey.CREATE_ACLS] = handlers[ApiKey.DELETE_ACLS] = self._direct
        for key in (*RULED, ApiKey.DESCRIBE_QUORUM, *VOTER_APIS):
            handlers[key] = self._direct
        credentials = ClearCredentials(core.seams.clock)
        handlers[ApiKey.ALTER_USER_SCRAM_CREDENTIALS] = credentials.noted(self._direct)
        api_keys = (*handlers, ApiKey.API_VERSIONS)
        handlers[ApiKey.API_VERSIONS] = ApiVersionsHandler(api_keys, core.features).handle
        clock, config = core.seams.clock, core.config
        self._settings: Mapping[str, Any] = config
        self._dynamic = DynamicSettings(config, logs=not config.is_broker)
        self._connections = ConnectionQuotas(clock, ConnectionLimits.of(config, OTHERS_FILES))
        self._server = KafkaServer(
            handlers,
            clock,
            settings=ServerSettings(max_request_bytes=config["socket.request.max.bytes"]),
            quotas=self._connections,
            resources=core.resources,
        )
        self._quotas = ClientQuotas(Windows.of(config))
        self._metering = Metering(self._server, self._quotas)
        self.envelopes = Envelopes(clock, authorizer, self._ask, core.requests.failed)
        """The requests that brokers forward. They end in `_ask`, too."""

    def configure(self, image: MetadataImage) -> None:
        """Apply the dynamic configs of this node, as Kafka's controllers do: the limits of the
        connections to this port, and TLS. It costs nothing if they have not changed."""
        settings = self._dynamic(image)
        if settings is not self._settings:
            self._settings = settings
            self._connections.limits = ConnectionLimits.of(settings, OTHERS_FILES)
            self._core.tls.configure(settings)

    @property
    def routes(self) -> Mapping[int, Route]:
        """Return the routes of the port by API key, with the times of their requests."""
        return self._server.routes

    def accept(self, link: Link) -> LinkHandler:
        """Return the handler of a new connection of a client (the Accept of `Wire.KAFKA`)."""
        return self._server.accept(link)

    def apply_quotas(self, image: MetadataImage) -> None:
        """Apply the client quotas of the committed `image` to the clients of this port."""
        self._quotas.configure(image.client_quotas)
        self._metering.follow()

    def _direct(self, context: RequestContext, request: Message) -> None:
        def answer(response: Any) -> None:
            if isinstance(response, Refusal):
                error = REFUSALS[response]
                context.respond(ERROR_RESPONSES[context.api_key](request, error, response.value))
            else:
                context.respond_raw(response)

        if (reason := unchecked_tls(request)) is not None:
            refused = ERROR_RESPONSES[context.api_key]
            context.respond(refused(request, ErrorCode.INVALID_REQUEST, reason))
            return
        client = None
        if self._authorizer is not None:
            client = self._authorizer.client(context.principal, context.peer.host)
        user = context.principal.name
        caller = Caller(context.client_id or "", context.version, context.api_key, client, user)
        size_bytes = context.request_bytes
        if size_bytes <= SLICED_ABOVE_BYTES:  # its elements are not counted
            size_bytes = client_request_bytes(size_bytes, None)
        self._ask(request, caller, context.connection, size_bytes, answer)

    def _ask(
        self,
        request: Message,
        caller: Caller,
        source: Hashable,
        size_bytes: int,
        answer: Callable[[object], None],
    ) -> None:
        """Call `answer` once, with the response's bytes in the version of `caller` or with a
        Refusal. `size_bytes` is the memory that the request holds.

        A response of the rules is encoded before anything is appended. A response of Raft is
        encoded when it arrives. It holds nothing that the client sent, so it can be encoded."""

        def encoded(response: object) -> object:
            return response if isinstance(response, Refusal) else encode(response, caller.version)

        of_raft = request.API_KEY == ApiKey.DESCRIBE_QUORUM
        refusal: object | None = None
        if self._authorizer is None:
            refusal = without_authorizer(request)
        elif of_raft or self._voters.handles(request):  # the rules check all other requests
            refusal = self._refusal(request, caller)
        if refusal is not None:
            answer(encoded(refusal))
        elif of_raft:
            answer(encoded(self._describe_quorum(request)))
        elif self._voters.handles(request):
            self._voters.ask(request, lambda response: answer(encoded(response)))
        else:
            self._ask_before(
                request,
                lambda: self._shell.submit(
                    request,
                    answer,
                    encode=encoded,
                    source=source,
                    linearizable=True,
                    caller=caller,
                    timeout_ms=getattr(request, "timeout_ms", 0),
                    size_bytes=size_bytes,
                ),
            )

    def _refusal(self, request: Message, caller: Caller) -> object | None:
        """Return the response to a request that the caller may not send, or None."""
        if self._authorizer is None or caller.client is None:
            return None
        permits = self._authorizer.permits_of(caller, self._latest_image())
        check = FORWARDED_CHECKS[request.API_KEY]
        return refusal_of(request, finished(check(permits, request, caller.version)))

    def _describe_quorum(self, request: Message) -> object:
        from quorate.quorum.protocol.schemas.cluster import DescribeQuorumRequest

        assert isinstance(request, DescribeQuorumRequest)
        asked = [
            (topic.topic_name, each.partition_index)
            for topic in request.topics
            for each in topic.partitions
        ]
        if asked != [(METADATA_TOPIC, 0)]:
            return no_such_quorum(request)
        description = self._core.replica.raft.describe()
        if description is None:
            return Refusal.NOT_CONTROLLER
        return quorum_response(description, self._core)

    def _describe_cluster(self, context: RequestContext, request: DescribeClusterRequest) -> None:
        from quorate.quorum.protocol.schemas.cluster import (
            DescribeClusterBroker,
            DescribeClusterResponse,
        )

        if request.endpoint_type != CONTROLLERS:
            text = "this is a controller: ask a broker to describe brokers (--bootstrap-server)"
            error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if context.version < ENDPOINT_TYPE_SINCE:  # it has no field for the type (KIP-919)
                error = ErrorCode.INVALID_REQUEST
            elif request.endpoint_type != BROKERS:
                error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
                text = f"Unsupported endpoint type {request.endpoint_type}"
            context.fail(error, text)
            return
        context.respond(
            DescribeClusterResponse(
                endpoint_type=CONTROLLERS,
                cluster_id=self._core.cluster_id,
                controller_id=self._core.replica.raft.leader_id,
                brokers=tuple(
                    DescribeClusterBroker(
                        broker_id=voter.voter_id,
                        host=voter.endpoints[0].host,
                        port=voter.endpoints[0].port,
                    )
                    for voter in self._core.voters
                ),
                cluster_authorized_operations=CLUSTER_OPERATIONS
                if request.include_cluster_authorized_operations
                else NOT_REQUESTED,
            )
        )


def no_such_quorum(request: DescribeQuorumRequest) -> Message:
    """Return the answer to a DescribeQuorum that does not name exactly the metadata log:
    UNKNOWN_TOPIC_OR_PARTITION for each named partition."""
    from quorate.quorum.protocol.schemas import cluster

    def unknown(each: cluster.QuorumPartition) -> cluster.QuorumPartitionState:
        return cluster.QuorumPartitionState(
            partition_index=each.partition_index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            leader_id=0,
            leader_epoch=0,
            high_watermark=0,
            current_voters=(),
            observers=(),
        )

    return cluster.DescribeQuorumResponse(
        topics=tuple(
            cluster.QuorumTopicState(
                topic_name=topic.topic_name, partitions=tuple(map(unknown, topic.partitions))
            )
            for topic in request.topics
        )
    )


def quorum_response(description: QuorumDescription, core: NodeCore) -> Message:
    """Return the answer to DescribeQuorum (KIP-595, KIP-836): the leader, the high watermark, and
    the log end offset and the fetch times (ms since 1970) of each replica."""
    from quorate.quorum.protocol.schemas import cluster

    def replica(each: ReplicaDescription) -> cluster.QuorumReplicaState:
        return cluster.QuorumReplicaState(
            replica_id=each.replica.id,
            replica_directory_id=each.replica.directory_id,
            log_end_offset=each.log_end_offset,
            last_fetch_timestamp=each.last_fetch_ms,
            last_caught_up_timestamp=each.last_caught_up_ms,
        )

    partition = cluster.QuorumPartitionState(
        partition_index=0,
        leader_id=description.leader_id,
        leader_epoch=description.epoch,
        high_watermark=description.high_watermark,
        current_voters=tuple(map(replica, description.voters)),
        observers=tuple(map(replica, description.observers)),
    )
    return cluster.DescribeQuorumResponse(
        topics=(cluster.QuorumTopicState(topic_name=METADATA_TOPIC, partitions=(partition,)),),
        nodes=tuple(
            cluster.QuorumNode(
                node_id=voter.voter_id,
                listeners=tuple(
                    cluster.QuorumListener(name=each.name, host=each.host, port=each.port)
                    for each in voter.endpoints
                ),
            )
            for voter in core.voters
        ),
    )
