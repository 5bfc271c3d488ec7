"""kafka-python's names; importing it warns of what Python 3.11 deprecates, an error in tests."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import (  # type: ignore[import-untyped]
        KafkaAdminClient,
        KafkaConsumer,
        KafkaProducer,
        TopicPartition,
    )
    from kafka.admin import ConfigResource, OffsetSpec  # type: ignore[import-untyped]
    from kafka.errors import (  # type: ignore[import-untyped]
        TopicAlreadyExistsError,
        UnknownTopicOrPartitionError,
    )
    from kafka.net.sasl.oauth import AbstractTokenProvider  # type: ignore[import-untyped]

__all__ = [
    "AbstractTokenProvider",
    "ConfigResource",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaProducer",
    "OffsetSpec",
    "TopicAlreadyExistsError",
    "TopicPartition",
    "UnknownTopicOrPartitionError",
]
