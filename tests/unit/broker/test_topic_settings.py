"""The effective settings of topics are computed again only when a dynamic config changes them."""

from __future__ import annotations

from quorate.broker import topic_settings
from quorate.broker.replication.partitions.settings import ReplicationSettings
from quorate.broker.topic_settings import EffectiveTopicSettings
from quorate.quorum.ids import EpochOffset
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from quorate.quorum.metadata.records import ConfigRecord
from quorate.quorum.metadata.replay import replay
from quorate.quorum.node.dynamic_settings import DynamicSettings
from tests.unit.config.test_key_wiring import loaded


def made() -> EffectiveTopicSettings:
    config = loaded({})
    settings = ReplicationSettings.of(config, config.log_dirs)
    return EffectiveTopicSettings(config, settings, DynamicSettings(config))


def changed(image: MetadataImage, kind: int, name: str, key: str, value: str) -> MetadataImage:
    record = ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
    return replay(image, [record], EpochOffset(1, image.last.offset + 1), 0)[0]


def test_topics_with_the_same_configs_share_their_settings() -> None:
    settings, image = made(), MetadataImage()
    for name in ("a", "b"):
        image = changed(image, TOPIC_RESOURCE, name, "retention.ms", "5")
    assert settings(image, "a") is settings(image, "b")
    assert settings(image, "a").log.retention_ms == 5
    assert settings(image, "c") is settings(image, "d")
    assert settings(image, "c") is not settings(image, "a")


def test_a_broker_config_that_concerns_no_topic_keeps_the_settings() -> None:
    settings, image = made(), MetadataImage()
    before = settings(image, "t")
    image = changed(image, BROKER_RESOURCE, "", "max.connections", "77")
    assert settings(image, "t") is before
    image = changed(image, BROKER_RESOURCE, "", "log.retention.ms", "77")
    assert settings(image, "t").log.retention_ms == 77
    image = changed(image, BROKER_RESOURCE, "4", "producer.id.expiration.ms", "78")
    assert settings(image, "t").partition.producer_id_expiration_ms == 78
    assert settings(image, "t").log.retention_ms == 77


def test_an_older_image_has_its_own_settings() -> None:
    settings, image = made(), MetadataImage()
    later = changed(image, BROKER_RESOURCE, "", "log.retention.ms", "77")
    assert settings(later, "t").log.retention_ms == 77
    assert settings(image, "t").log.retention_ms != 77


def test_the_number_of_kept_settings_is_bounded() -> None:
    settings, image = made(), MetadataImage()
    for number in range(topic_settings.MAX_KEPT + 5):
        image = changed(image, TOPIC_RESOURCE, f"t{number}", "retention.ms", str(number))
        assert settings(image, f"t{number}").log.retention_ms == number
    assert len(settings._kept) <= topic_settings.MAX_KEPT


def test_every_negative_retention_means_no_limit() -> None:
    """As in Kafka. Read as a number, it would delete every segment."""
    settings, image = made(), MetadataImage()
    for key in ("log.retention.ms", "log.retention.bytes"):
        image = changed(image, BROKER_RESOURCE, "", key, "-5")
    log = settings(image, "t").log
    assert (log.retention_ms, log.retention_bytes) == (-1, -1)
