"""A metadata image as a tree of nodes, with the names of Kafka's metadata shell.

A leaf is its text. A directory maps the names of its children to functions that create them. Only
visited nodes are created, so a large number of partitions costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from quorate.cli.features.command import METADATA_VERSION
from quorate.cli.shell import texts
from quorate.cli.shell.foreign_state import ForeignState
from quorate.config.java_numbers import double_text
from quorate.quorum.ids import uuid_to_text
from quorate.quorum.metadata.image import MetadataImage, Topic
from quorate.quorum.sasl.scram_mechanisms import BY_NUMBER

Directory = Mapping[str, Callable[[], "Node"]]
Node = str | Directory
INDENT = "  "


def root(image: MetadataImage, foreign: ForeignState, version: str) -> Directory:
    """Return the root directory of the tree. `version` is that of Quorate."""
    return {
        "image": lambda: image_node(image, foreign),
        "local": lambda: {"commitId": lambda: "unknown", "version": lambda: version},
    }


def image_node(image: MetadataImage, foreign: ForeignState) -> Directory:
    """Return the directory of the metadata image."""
    return {
        "acls": lambda: {"byId": partial(_acls, image)},
        "clientQuotas": partial(_quotas, image),
        "cluster": partial(_cluster, image),
        "configs": partial(_configs, image),
        "delegationToken": partial(_tokens, foreign),
        "features": partial(_features, image),
        "producerIds": partial(_producer_ids, image),
        "provenance": partial(texts.provenance_text, image),
        "scram": partial(_scram, image),
        "topics": partial(_topics, image),
    }


def tree_lines(node: Node, depth: int = 0) -> Iterator[str]:
    """Yield the lines of `tree`: names in order, each followed by the nodes below it."""
    indent = INDENT * depth
    if isinstance(node, str):
        yield indent + node
        return
    for name in sorted(node):
        yield f"{indent}{name}:"
        yield from tree_lines(node[name](), depth + 1)


def plain(node: Node) -> object:
    """Return a node as JSON values."""
    return node if isinstance(node, str) else {name: plain(node[name]()) for name in sorted(node)}


def _cluster(image: MetadataImage) -> Directory:
    return {
        "brokers": lambda: {
            str(number): partial(texts.broker_text, broker)
            for number, broker in image.brokers.items()
        },
        "controllers": lambda: {
            str(number): partial(texts.controller_text, controller)
            for number, controller in image.controllers.items()
        },
    }


def _topics(image: MetadataImage) -> Directory:
    return {
        "byId": lambda: {
            uuid_to_text(topic.id): partial(_topic, topic) for topic in image.topics.values()
        },
        "byName": lambda: {topic.name: partial(_topic, topic) for topic in image.topics.values()},
    }


def _topic(topic: Topic) -> Directory:
    return {
        "id": partial(uuid_to_text, topic.id),
        "name": lambda: topic.name,
        **{
            str(number): partial(texts.partition_text, partition)
            for number, partition in topic.partitions.items()
        },
    }


def _configs(image: MetadataImage) -> Directory:
    return {
        texts.resource_text(kind, name): partial(_leaves, image.config(kind, name))
        for kind, name in image.configs
    }


def _features(image: MetadataImage) -> Directory:
    return {
        "metadataVersion": partial(texts.metadata_version_text, image),
        # Kafka 4.1 still lists this node, and it is empty.
        "zkMigrationState": dict,
        **{
            f"finalized_{name}": partial(str, level)
            for name, level in image.features.items()
            if name != METADATA_VERSION
        },
    }


def _producer_ids(image: MetadataImage) -> Directory:
    return {"nextProducerId": lambda: str(image.next_producer_id or -1)}


def _acls(image: MetadataImage) -> Directory:
    acls = image.acls.by_id
    return {uuid_to_text(key): partial(texts.acl_text, acl) for key, acl in acls.items()}


def _quotas(image: MetadataImage) -> Directory:
    return {
        texts.entity_text(entity): partial(
            _leaves, {key: double_text(value) for key, value in quotas.items()}
        )
        for entity, quotas in image.client_quotas.items()
    }


def _scram(image: MetadataImage) -> Directory:
    return {
        mechanism.name: partial(_credentials, image, number)
        for number, mechanism in BY_NUMBER.items()
    }


def _credentials(image: MetadataImage, mechanism: int) -> Directory:
    return {
        user: partial(texts.credential_text, image.scram_credentials[user, number])
        for user, number in sorted(image.scram_credentials)
        if number == mechanism
    }


def _tokens(foreign: ForeignState) -> Directory:
    return {key: partial(texts.token_text, token) for key, token in foreign.tokens.items()}


def _leaves(values: Mapping[str, str]) -> Directory:
    return {name: partial(str, value) for name, value in values.items()}
