"""Commands of the metadata shell on some files, with Kafka's output in shell.txt.

`@kafka` is a snapshot that Apache Kafka wrote, and `@log` a segment of Kafka's log. `@ours` is a
snapshot that Quorate writes of such a log, and `@foreign` a snapshot with all records that
Quorate's image does not hold. The commands at which Kafka's shell fails (docs/differences.md) and
`/local`, which describes the shell itself, are omitted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from quorate.quorum.analytics.replay.moment import moment
from quorate.quorum.ids import uuid_from_text
from quorate.quorum.log.batches.batch import CONTROL, build_batch, build_value_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.metadata import acl_records, records, scram_records, unsupported_records
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.metadata.snapshot_file import write_snapshot
from quorate.quorum.raft.control_records import (
    ControlRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    encode_control,
)
from quorate.quorum.raft.voter_history import QuorumVoters
from tests.clients.cluster import wait_for
from tests.golden.tool_runs import Played, Run, Runner, run
from tests.kafka.tools import Ended

FIXTURES = Path(__file__).parent.parent / "fixtures"
WALL_MS = 1_795_225_508_100
EPOCH = 3
BROKER = uuid_from_text("1_IdOTk6SlWf_aBwrtu5FA")
TOPIC = uuid_from_text("3CvK10jmS5C4IvkHBJHxVg")

TALK = r"""help
man ls
man cat
man cd
man history
man pwd
man nosuch
pwd
pwd
 ls /
cd image
pwd
ls
cd topics/byName
ls
ls -l
cat
cat --x --y z
lz
l
c
history 3
history 0
history -1
history x
history 1 2
cd a b c
tree
man
exit now
cat 'a b' "c d" e\ f
cat topic-0/id/x
cd nosuch
cd /image/provenance
cat /image
ls /image/{acls,scram} /image/provenance
ls /image/cluster/controllers /image/acls/byId /image/producerIds
ls "" ""
cd ../..
pwd
ls -h
cat --help x
ls -- -x
find cluster/../producerIds
cd

exit
"""

AT_END = "provenance:\n  offset 82, epoch 1,"
RUNS = (
    run("metadata-shell -s @kafka ls /"),
    run("metadata-shell -s @kafka ls"),
    run("metadata-shell -s @kafka tree /image", until=AT_END),
    run(
        "metadata-shell -s @kafka find /image/topics/byName /image/nosuch/x",
        until="topic-9/name",
        fails=True,
    ),
    run(
        "metadata-shell -s @kafka cat /image/topics/byName/topic-{0,9}/? /image/*/byN*/topic-1/id",
        until="PartitionRegistration",
    ),
    run("metadata-shell -s @kafka cat /image /image/nosuch", fails=True),
    run("metadata-shell -s @kafka tree /nosuch", fails=True),
    run("metadata-shell -s @kafka cd /image", fails=True),
    run("metadata-shell -s @kafka cat", fails=True),
    run("metadata-shell -s @kafka nosuch /image", fails=True),
    run("metadata-shell -s @kafka", stdin=TALK, until="topic-9"),
    run("metadata-shell -s @log tree /image", until="offset 90, epoch 2"),
    run("metadata-shell -s @ours tree /image", until=AT_END),
    run("metadata-shell -s @foreign tree /image", until="epoch 3,"),
    run(
        "metadata-shell -s @foreign cat '/image/clientQuotas/ip(10.*/*' /image/scram/*/alice",
        until="1.2E-4\nScramCredentialData",
    ),
    run("metadata-shell -s @foreign", stdin="cd /image/acls/byId\nls\ncat *\n", until="Acl("),
)


def words(line: str, files: dict[str, Path]) -> list[str]:
    return [str(files.get(word, word)) for word in shlex.split(line)]


def play(wanted: Run, files: dict[str, Path], runner: Runner) -> Played:
    tool, *arguments = words(wanted.line, files)

    def told() -> Ended | None:
        done = runner(tool, *arguments, stdin=wanted.stdin)
        return done if wanted.until in "\n".join(done.lines) else None

    # Kafka's shell may answer before it has read the file.
    done = wait_for(told, f"{wanted.line}: {wanted.until}", 60.0) if wanted.until else told()
    assert done is not None
    # A leaf without text is an indented empty line.
    return Played(wanted.line, done.code, [re.sub(r"^ +$", "", line) for line in done.lines])


def files_in(root: Path) -> dict[str, Path]:
    """Return the files that the runs name. Those that are no fixtures are written below `root`."""
    kafka = FIXTURES / "kafka-4.1.1-metadata" / "c1"
    at_end = moment(kafka)
    ours = root / f"{at_end.offset + 1:020}-{at_end.epoch:010}.checkpoint"
    ours.write_bytes(b"".join(write_snapshot(at_end.image, QuorumVoters())))
    other = root / f"{900:020}-{EPOCH:010}.checkpoint"
    other.write_bytes(b"".join(snapshot_of(list(foreign_records()))))
    return {
        "@kafka": kafka / "00000000000000000368-0000000001.checkpoint",
        "@log": FIXTURES / "kafka-4.1.1-voters/__cluster_metadata-0/00000000000000000000.log",
        "@ours": ours,
        "@foreign": other,
    }


def snapshot_of(contents: Sequence[tuple[MetadataRecord, int | None]]) -> Iterator[bytes]:
    """Yield the batches of a snapshot with these records, each in the given version."""
    values = [encode_record(record, version) for record, version in contents]
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=WALL_MS)
    yield control_batch(0, header)
    yield bytes(build_value_batch(values, base_offset=1, leader_epoch=EPOCH, timestamp_ms=WALL_MS))
    yield control_batch(1 + len(values), SnapshotFooterRecord(version=0))


def control_batch(offset: int, record: ControlRecord) -> bytes:
    row = Record(offset, WALL_MS, *encode_control(record))
    return bytes(build_batch([row], leader_epoch=EPOCH, flags=CONTROL))


def foreign_records() -> Iterator[tuple[MetadataRecord, int | None]]:
    yield records.FeatureLevelRecord(name="metadata.version", feature_level=27), None
    yield from ((each, None) for each in (broker(), *configs(), *credentials(), *quotas()))
    yield records.TopicRecord(name="t", topic_id=TOPIC), None
    yield from partitions()
    yield from ((each, None) for each in (*acls(), token()))


def broker() -> MetadataRecord:
    return records.RegisterBrokerRecord(
        broker_id=4,
        incarnation_id=BROKER,
        broker_epoch=7,
        end_points=(
            records.Endpoint(name="SSL", host="h", port=9, security_protocol=1),
            records.Endpoint(name="A", host="h", port=9, security_protocol=3),
        ),
        features=(
            records.FeatureRange(name="b", min_supported_version=1, max_supported_version=1),
            records.FeatureRange(name="a", min_supported_version=1, max_supported_version=32767),
        ),
        rack="r1",
        fenced=True,
        in_controlled_shutdown=True,
        log_dirs=(BROKER, TOPIC),
    )


def partitions() -> Iterator[tuple[MetadataRecord, int]]:
    """Yield partition records in the oldest and in the newest version."""
    old = records.PartitionRecord(
        partition_id=0,
        topic_id=TOPIC,
        replicas=(4, 5),
        isr=(4,),
        leader=4,
        leader_epoch=1,
        partition_epoch=2,
    )
    new = records.PartitionRecord(
        partition_id=10,
        topic_id=TOPIC,
        replicas=(4, 5),
        isr=(4,),
        leader=-1,
        leader_epoch=1,
        partition_epoch=2,
        adding_replicas=(5,),
        removing_replicas=(4,),
        leader_recovery_state=records.RECOVERING,
        directories=(BROKER, TOPIC),
        eligible_leader_replicas=(5,),
        last_known_elr=(4, 5),
    )
    yield from ((old, 0), (new, 2))


def configs() -> Iterator[MetadataRecord]:
    for kind, name, key, value in (
        (4, "", "log.retention.ms", "1"),
        (4, "4", "ssl.keystore.password", "told"),
        (16, "m", "interval.ms", ""),
        (32, "g", "consumer.session.timeout.ms", "50000"),
    ):
        yield records.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def credentials() -> Iterator[MetadataRecord]:
    for name, mechanism in (("alice", 1), ("bob", 2), ("carol", 1)):
        yield scram_records.UserScramCredentialRecord(
            name=name,
            mechanism=mechanism,
            salt=b"\x01\xff",
            stored_key=b"ab",
            server_key=b"cd",
            iterations=4096,
        )
    yield scram_records.UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"", stored_key=b"a", server_key=b"b", iterations=8192
    )


def quotas() -> Iterator[MetadataRecord]:
    for entity, key, value, remove in (
        ({"user": "a(l)i\\ce", "client-id": "c"}, "producer_byte_rate", 12345678.9, False),
        ({"ip": "10.0.0.1"}, "connection_creation_rate", 1000, False),
        ({"ip": "10.0.0.1"}, "large", 1e7, False),
        ({"ip": "10.0.0.1"}, "small", 0.00012, False),
        ({"ip": "10.0.0.1"}, "gone", 3, False),
        ({"ip": "10.0.0.1"}, "gone", 3, True),
        ({"ip": "10.0.0.2"}, "gone", 3, False),
        ({"ip": "10.0.0.2"}, "gone", 3, True),
    ):
        named = tuple(records.QuotaEntity(entity_type=k, entity_name=v) for k, v in entity.items())
        yield records.ClientQuotaRecord(entity=named, key=key, value=value, remove=remove)


def acls() -> Iterator[MetadataRecord]:
    for key, kind, name, pattern, operation, permission in (
        (BROKER, 2, "t", 3, 3, 3),
        (TOPIC, 4, "kafka-cluster", 4, 12, 2),
    ):
        yield acl_records.AccessControlEntryRecord(
            id=key,
            resource_type=kind,
            resource_name=name,
            pattern_type=pattern,
            principal="User:bob",
            host="*",
            operation=operation,
            permission_type=permission,
        )


def token() -> MetadataRecord:
    return unsupported_records.DelegationTokenRecord(
        owner="User:o",
        requester="User:r",
        renewers=("User:a", "User:b"),
        issue_timestamp=1,
        max_timestamp=2,
        expiration_timestamp=3,
        token_id="tok",
    )
