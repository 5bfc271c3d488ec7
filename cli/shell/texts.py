"""The texts of the shell's leaves, in the form of the toString methods of Kafka's Java classes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from quorate.cli.features.command import METADATA_VERSION, level_text
from quorate.quorum.ids import ZERO_UUID, uuid_to_text
from quorate.quorum.metadata.acls import Acl
from quorate.quorum.metadata.image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    Broker,
    ClientQuotaEntity,
    ControllerRegistration,
    MetadataImage,
    Partition,
    ScramCredential,
)
from quorate.quorum.metadata.records import RECOVERED, Endpoint, FeatureRange
from quorate.quorum.metadata.unsupported_records import (
    DelegationTokenRecord,
)
from quorate.quorum.protocol.acl_codes import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
    name_of,
)

UNBOUNDED = 2**15 - 1
"""The highest version of a feature range that Kafka prints as `low+`."""
SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
RESOURCE_TYPES = {
    TOPIC_RESOURCE: "TOPIC",
    BROKER_RESOURCE: "BROKER",
    8: "BROKER_LOGGER",
    16: "CLIENT_METRICS",
    32: "GROUP",
}
# The parts of an entity, in the order and with the names of Kafka's shell.
QUOTA_PARTS = {"client-id": "clientId", "ip": "ip", "user": "user"}
DEFAULT_ENTITY = "<default>"


def provenance_text(image: MetadataImage) -> str:
    """Return the offset, epoch and time of the last record in the image."""
    moment = datetime.fromtimestamp(image.last_timestamp_ms // 1000, UTC)
    fraction = f".{image.last_timestamp_ms % 1000:03}".rstrip("0").rstrip(".")
    time = f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z[UTC]"
    return f"offset {image.last.offset}, epoch {image.last.epoch}, time {time}"


def metadata_version_text(image: MetadataImage) -> str:
    """Return the level of metadata.version as a Java Optional."""
    level = image.features.get(METADATA_VERSION)
    return "Optional.empty" if level is None else f"Optional[{level_text(METADATA_VERSION, level)}]"


def broker_text(broker: Broker) -> str:
    """Return a BrokerRegistration."""
    return _fields(
        "BrokerRegistration",
        id=broker.id,
        epoch=broker.epoch,
        incarnationId=uuid_to_text(broker.incarnation_id),
        listeners=_listed(_endpoint(each) for each in broker.endpoints),
        supportedFeatures=_features(broker.features),
        rack="Optional.empty" if broker.rack is None else f"Optional[{broker.rack}]",
        fenced=_bool(broker.fenced),
        inControlledShutdown=_bool(broker.in_controlled_shutdown),
        isMigratingZkBroker="false",
        directories=_listed(uuid_to_text(each) for each in broker.log_dirs),
    )


def controller_text(controller: ControllerRegistration) -> str:
    """Return a ControllerRegistration."""
    return _fields(
        "ControllerRegistration",
        id=controller.id,
        incarnationId=uuid_to_text(controller.incarnation_id),
        zkMigrationReady="false",
        listeners=_listed(_endpoint(each) for each in controller.endpoints),
        supportedFeatures=_features(controller.features),
    )


def partition_text(partition: Partition) -> str:
    """Return a PartitionRegistration."""
    recovered = partition.leader_recovery_state == RECOVERED
    # Before 3.7 partition records had no directories (KIP-858).
    directories = partition.directories or (ZERO_UUID,) * len(partition.replicas)
    return _fields(
        "PartitionRegistration",
        replicas=_listed(partition.replicas),
        directories=_listed(uuid_to_text(each) for each in directories),
        isr=_listed(partition.isr),
        removingReplicas=_listed(partition.removing),
        addingReplicas=_listed(partition.adding),
        elr=_listed(partition.elr),
        lastKnownElr=_listed(partition.last_known_elr),
        leader=partition.leader,
        leaderRecoveryState="RECOVERED" if recovered else "RECOVERING",
        leaderEpoch=partition.leader_epoch,
        partitionEpoch=partition.partition_epoch,
    )


def resource_text(resource_type: int, name: str) -> str:
    """Return a config resource as TYPE:NAME."""
    kind = RESOURCE_TYPES.get(resource_type, str(resource_type))
    return f"{kind}:{name}" if name else kind


def acl_text(acl: Acl) -> str:
    """Return a StandardAcl."""
    return _fields(
        "StandardAcl",
        resourceType=name_of(ResourceType, acl.resource_type),
        resourceName=acl.resource_name,
        patternType=name_of(PatternType, acl.pattern_type),
        principal=acl.principal,
        host=acl.host,
        operation=name_of(Operation, acl.operation),
        permissionType=name_of(PermissionType, acl.permission_type),
    )


def credential_text(credential: ScramCredential) -> str:
    """Return a ScramCredentialData."""
    return _fields(
        "ScramCredentialData",
        salt=credential.salt.hex(),
        storedKey=credential.stored_key.hex(),
        serverKey=credential.server_key.hex(),
        iterations=credential.iterations,
    )


def token_text(token: DelegationTokenRecord) -> str:
    """Return a DelegationTokenData, with the parentheses as Kafka prints them."""
    return (
        f"DelegationTokenDatatokenId={token.token_id}(owner={token.owner}"
        f"(tokenRequester={token.requester}(renewers={' '.join(token.renewers)}"
        f", issueTimestamp={token.issue_timestamp}, maxTimestamp={token.max_timestamp})"
        f", expiryTimestamp={token.expiration_timestamp}"
    )


def entity_text(entity: ClientQuotaEntity) -> str:
    """Return a quota entity in the form `clientId(c)_user(u)`.

    Kafka's shell omits defaults, so that different entities look the same. Here they are shown."""
    names = dict(entity)
    return "_".join(
        f"{part}({_escaped(DEFAULT_ENTITY if names[kind] is None else names[kind] or '')})"
        for kind, part in QUOTA_PARTS.items()
        if kind in names
    )


def _fields(name: str, **fields: object) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in fields.items())})"


def _listed(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _endpoint(endpoint: Endpoint) -> str:
    protocol = SECURITY_PROTOCOLS.get(endpoint.security_protocol, endpoint.security_protocol)
    return (
        f"Endpoint(listenerName='{endpoint.name}', securityProtocol={protocol}, "
        f"host='{endpoint.host}', port={endpoint.port})"
    )


def _features(features: Iterable[FeatureRange]) -> str:
    return f"{{{', '.join(f'{each.name}: {_range(each)}' for each in features)}}}"


def _range(feature: FeatureRange) -> str:
    low, high = feature.min_supported_version, feature.max_supported_version
    if low == high:
        return str(low)
    return f"{low}+" if high == UNBOUNDED else f"{low}-{high}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
