"""`quorate console-consumer` on a topic whose first records are gone."""

from __future__ import annotations

from functools import partial

import pytest

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.consumer import EARLIEST, Consumer
from quorate.cli.client.errors import Refused
from quorate.cli.console_consumer import reset
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from tests.unit.cli.fake_kafka import fake_kafka
from tests.unit.cli.test_client import Topic


def test_it_reads_on_where_records_are_left(capsys: pytest.CaptureFixture[str]) -> None:
    """A group whose committed offset retention had removed could not be read any more."""
    topic = Topic()
    records = [Record(n, 1000 + n, None, b"v%d" % n) for n in range(4)]
    topic.batches = [bytes(build_batch(records, leader_epoch=2))]
    topic.start = 2
    with fake_kafka(topic.answers()) as topic.server:
        admin = Admin(AdminSettings(servers=((topic.server.host, topic.server.port),)))
        consumer = Consumer(admin, "t")
        consumer.seek(1)
        with pytest.raises(Refused, match="OFFSET_OUT_OF_RANGE"):
            list(consumer.poll())
        consumer.when_out_of_range = partial(reset, consumer, "t", EARLIEST)
        assert list(consumer.poll()) == []
        assert [each.record.offset for each in consumer.poll()] == [2, 3]
        admin.close()
    assert capsys.readouterr().err == "t-0: offset 1 is outside of the log. Reading on at 2.\n"
