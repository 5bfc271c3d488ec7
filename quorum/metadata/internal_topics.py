"""The names of the topics that coordinators own.

Clients may read these topics. Only the coordinators write to them, so a Produce or DeleteRecords of
a client is refused with INVALID_TOPIC_EXCEPTION.
"""

from __future__ import annotations

OFFSETS_TOPIC = "__consumer_offsets"
"""The topic in which the group coordinators store groups and committed offsets."""
INTERNAL_TOPICS = frozenset((OFFSETS_TOPIC, "__transaction_state", "__share_group_state"))
"""The internal topics of Kafka 4.1. Of these, Quorate creates only OFFSETS_TOPIC."""
