"""The configs min.insync.replicas while eligible leader replicas (KIP-966) are on.

A leader and the controller must resolve min.insync.replicas to the same value, because the leader's
high watermark waits for that many members of the ISR and the controller builds the ELR on it. So
the value is dynamic and cluster-wide while ELR is on:

- Enabling ELR writes the controller's static value as the dynamic default of all brokers, unless
  one is set, and deletes the values of single brokers.
- Afterwards no broker may have a value of its own, and the default of all brokers cannot be
  deleted.
- A change of the value of a topic, or of the default, clears the ELR of the topics concerned.
"""

from __future__ import annotations

from quorate.config.topic_keys import TOPIC_KEYS
from quorate.quorum.controller.partitions.eligible_leaders import MIN_INSYNC_REPLICAS, elr_enabled
from quorate.quorum.controller.state.context import CLUSTER_DEFAULT, NO_CONFIGS, Context
from quorate.quorum.controller.state.result import RequestRefused
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.quorum.metadata.records import ClearElrRecord, ConfigRecord, MetadataRecord
from quorate.quorum.protocol.errors import ErrorCode

MAX_CLEARED_TOPICS = 1000
"""The maximum number of ClearElrRecords of one change that name a topic each. One record without a
name replaces more of them."""


def min_isr_for_all(context: Context) -> list[MetadataRecord]:
    """Return the records that make min.insync.replicas a dynamic, cluster-wide config.

    As in Kafka, they stand before the record that enables ELR, or in the bootstrap transaction.
    """
    configs = context.image.configs
    records: list[MetadataRecord] = []
    if MIN_INSYNC_REPLICAS not in configs.get(CLUSTER_DEFAULT, NO_CONFIGS):
        key = TOPIC_KEYS[MIN_INSYNC_REPLICAS]
        static = context.settings.topic_defaults.get(MIN_INSYNC_REPLICAS, key.default)
        records.append(min_isr_record("", key.format(static)))
    records += (
        min_isr_record(name, None)
        for resource_type, name in sorted(configs)
        if resource_type == BROKER_RESOURCE
        and name
        and MIN_INSYNC_REPLICAS in configs[resource_type, name]
    )
    return records


def min_isr_record(broker: str, value: str | None) -> ConfigRecord:
    """Return the record that sets min.insync.replicas of a broker, or of all brokers if `broker` is
    empty. A value of None deletes it."""
    return ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name=broker, name=MIN_INSYNC_REPLICAS, value=value
    )


def check_min_isr(
    context: Context, resource_type: int, name: str, values: dict[str, str | None]
) -> None:
    """Raise RequestRefused if ELR is on and the new `values` of a broker resource contain
    min.insync.replicas for a single broker, or delete the default of all brokers.

    A deletion for a single broker, which has no value, would clear the ELR of all topics. Only a
    value that a log of another origin holds can be deleted."""
    if resource_type != BROKER_RESOURCE or MIN_INSYNC_REPLICAS not in values:
        return
    if not elr_enabled(context.image):
        return
    stored = MIN_INSYNC_REPLICAS in context.image.config(BROKER_RESOURCE, name)
    if name and (values[MIN_INSYNC_REPLICAS] is not None or not stored):
        raise RequestRefused(
            ErrorCode.INVALID_CONFIG,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        )
    if not name and values[MIN_INSYNC_REPLICAS] is None:
        raise RequestRefused(
            ErrorCode.INVALID_CONFIG,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        )


def clear_elr_records(
    context: Context, resource_type: int, name: str, values: dict[str, str | None]
) -> list[MetadataRecord]:
    """Return the records that clear the ELR if `values`, the configs that are written for a
    resource, contain min.insync.replicas.

    An ELR that was built with the old value proves nothing under the new one. A topic's config
    concerns this topic only, a broker's config all topics that have an ELR.
    """
    if MIN_INSYNC_REPLICAS not in values or not elr_enabled(context.image):
        return []
    if resource_type == TOPIC_RESOURCE:
        return [ClearElrRecord(topic_name=name)]
    topics = [context.image.topics[each].name for each in context.index.topics_with_elr()]
    if len(topics) > MAX_CLEARED_TOPICS:
        return [ClearElrRecord(topic_name="")]
    return [ClearElrRecord(topic_name=each) for each in sorted(topics)]
