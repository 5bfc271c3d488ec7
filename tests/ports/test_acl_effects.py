"""The effects of ACLs that no single request shows: what a client sees, and when a DENY holds."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from quorate.broker.metrics.scrape import broker_metrics
from quorate.quorum.controller.state.messages import (
    NODE_PRINCIPAL,
    EnvelopeRequest,
    EnvelopeResponse,
)
from quorate.quorum.protocol.acl_codes import Operation, PatternType, PermissionType
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.authorized_operations import bit_field
from quorate.quorum.protocol.codec import decode, encode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import (
    acls,
    fetch,
    find_coordinator,
    group_admin,
    init_producer_id,
    metadata,
    produce,
    topics,
)
from quorate.quorum.protocol.wire import Message
from tests.ports.node import BROKER_PORT, CONTROLLERS_PORT, running
from tests.ports.requests import BUILDERS, GROUP, READ, WRITTEN, batch, create
from tests.ports.secured import (
    ALICE,
    CLUSTER,
    GROUPS,
    NOBODY,
    ROOT,
    TOPIC,
    Secured,
    secured_cluster,
)

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
DESCRIBE_VERSION, DELETE_VERSION, PRODUCE_VERSION, FETCH_VERSION = 12, 6, 9, 12


@pytest.fixture(scope="module")
def cluster() -> Iterator[Secured]:
    with secured_cluster() as found:
        yield found


@pytest.fixture
def secured(cluster: Secured) -> Iterator[Secured]:
    yield cluster
    cluster.forget()


def described(*names: str, creates: bool = False) -> metadata.MetadataRequest:
    wanted = tuple(metadata.MetadataRequestTopic(name=name) for name in names)
    return metadata.MetadataRequest(
        topics=wanted or None,
        allow_auto_topic_creation=creates,
        include_topic_authorized_operations=True,
    )


def deletion(name: str) -> topics.DeleteTopicsRequest:
    return topics.DeleteTopicsRequest(topics=(topics.DeleteTopicState(name=name),), timeout_ms=1000)


def acl(**fields: Any) -> acls.AclCreation:
    given = {
        "resource_type": TOPIC,
        "resource_name": READ,
        "resource_pattern_type": PatternType.LITERAL,
        "principal": str(ALICE),
        "host": "*",
        "operation": Operation.READ,
        "permission_type": PermissionType.ALLOW,
    }
    return acls.AclCreation(**{**given, **fields})


def created(secured: Secured, *creations: acls.AclCreation) -> list[int]:
    """Return the error codes of the creations."""
    answer: Any = secured.ask(ROOT, acls.CreateAclsRequest(creations=creations), 3)
    secured.node.run(0.2)
    return [each.error_code for each in answer.results]


def test_super_users_are_those_of_the_nodes_own_file() -> None:
    with secured_cluster(super_users="User:root; User:alice") as secured:
        answer: Any = secured.ask(ALICE, create("made"), 5)
        assert [each.error_code for each in answer.topics] == [ErrorCode.NONE]
        answer = secured.ask(NOBODY, create("more"), 5)
        assert [each.error_code for each in answer.topics] == [DENIED]


def test_a_resource_without_acls_is_open_if_the_key_says_so() -> None:
    with secured_cluster(allow_everyone_if_no_acl_found="true") as secured:
        answer: Any = secured.ask(NOBODY, described(READ, WRITTEN), DESCRIBE_VERSION)
        assert {each.error_code for each in answer.topics} == {ErrorCode.NONE}
        assert created(secured, acl()) == [0]
        answer = secured.ask(NOBODY, described(READ, WRITTEN), DESCRIBE_VERSION)
        assert {each.name: each.error_code for each in answer.topics} == {READ: DENIED, WRITTEN: 0}


def test_a_deny_binds_the_next_forwarded_request(secured: Secured) -> None:
    """The controller checks on its latest image, so the request needs no time to be refused."""
    for number in range(5):
        name = f"kept-{number}"
        secured.allow((TOPIC, Operation.DELETE))
        secured.ask(ROOT, create(name), 5)
        denial = acl(
            resource_name="*", operation=Operation.DELETE, permission_type=PermissionType.DENY
        )
        raw = secured.connect(ALICE)
        secured.ask(ROOT, acls.CreateAclsRequest(creations=(denial,)), 3)
        answer: Any = secured.node.ask(raw, deletion(name), DELETE_VERSION)
        assert [each.error_code for each in answer.responses] == [DENIED]
        secured.forget()


def envelope(secured: Secured, request: Message, version: int, **who: str) -> EnvelopeResponse:
    """Send an envelope to the controller as a broker does, and return its response."""
    process = secured.node.cluster.controllers[0].process
    assert process is not None and process.controller is not None
    answers: list[Any] = []
    message = EnvelopeRequest(
        api_key=request.API_KEY,
        version=version,
        client_id="",
        body=encode(request, version),
        **who,  # type: ignore[arg-type]
    )
    peer: Any = type("Sender", (), {"address": BROKER_PORT, "node_id": 2})()
    process.controller.port.envelopes.handle(peer, message, answers.append)
    secured.node.until(lambda: answers)
    answer: EnvelopeResponse = answers[0]
    return answer


def test_an_envelope_that_names_no_client_is_refused(secured: Secured) -> None:
    """A broker of an earlier release sends none. No principal but a user's is believed."""
    for who in (
        {},
        {"principal_type": "User", "principal_name": "root"},
        {"principal_type": "User", "client_host": "10.0.0.1"},
        {"principal_type": "Root", "principal_name": "root", "client_host": "10.0.0.1"},
        {"principal_type": NODE_PRINCIPAL},
    ):
        answer = envelope(secured, create("stolen"), 5, **who)
        assert answer.error == ErrorCode.CLUSTER_AUTHORIZATION_FAILED, who
    named = {"principal_type": "User", "principal_name": "nobody", "client_host": "10.0.0.1"}
    answer = envelope(secured, create("stolen"), 5, **named)
    response = decode(topics.CreateTopicsResponse, 5, answer.body)
    assert [each.error_code for each in response.topics] == [DENIED]
    assert "stolen" not in secured.node.cluster.newest_image().topic_ids


def test_a_broker_creates_internal_topics_for_itself() -> None:
    """The client needs DESCRIBE on its group, and no permission to create topics."""
    with secured_cluster() as secured:
        assert "__consumer_offsets" in secured.node.cluster.newest_image().topic_ids
    with running() as node:  # a controller without an authorizer writes no ACLs
        found = Secured(node)
        request = acls.CreateAclsRequest(creations=(acl(),))
        answer = envelope(found, request, 3, principal_type="User", principal_name="root")
        response = decode(acls.CreateAclsResponse, 3, answer.body)
        assert [each.error_code for each in response.results] == [ErrorCode.SECURITY_DISABLED]
        assert "Set authorizer.class.name" in (response.results[0].error_message or "")


def test_a_client_sees_only_what_it_may_describe(secured: Secured) -> None:
    """The bit fields name its own operations, and those of the cluster need DESCRIBE on it."""
    assert created(secured, acl()) == [0]
    answer: Any = secured.ask(ALICE, described(), DESCRIBE_VERSION)
    (topic,) = answer.topics
    operations = bit_field((Operation.READ, Operation.DESCRIBE))
    assert (topic.name, topic.topic_authorized_operations) == (READ, operations)
    assert answer.brokers and answer.cluster_id
    request = metadata.MetadataRequest(topics=(), include_cluster_authorized_operations=True)
    answer = secured.ask(ALICE, request, 10)
    assert answer.cluster_authorized_operations == 0
    answer = secured.ask(ROOT, request, 10)
    assert answer.cluster_authorized_operations > 0
    answer = secured.ask(ALICE, metadata.MetadataRequest(topics=()), 0)
    assert [each.name for each in answer.topics] == [READ]  # version 0 asks for all topics
    one = metadata.MetadataRequest(topics=(metadata.MetadataRequestTopic(name=WRITTEN),))
    answer = secured.ask(ALICE, one, 0)
    assert [(each.name, each.error_code) for each in answer.topics] == [(WRITTEN, DENIED)]


def test_a_topic_id_does_not_show_the_name(secured: Secured) -> None:
    """An unknown id is no secret, and has another error."""
    by_id = metadata.MetadataRequestTopic(name=None, topic_id=secured.world.read_id)
    request = metadata.MetadataRequest(topics=(by_id,), allow_auto_topic_creation=False)
    answer: Any = secured.ask(NOBODY, request, DESCRIBE_VERSION)
    assert [(each.name, each.error_code) for each in answer.topics] == [(None, DENIED)]
    state = topics.DeleteTopicState(name=None, topic_id=secured.world.read_id)
    deletes = topics.DeleteTopicsRequest(topics=(state,), timeout_ms=1000)
    for needs, name in (((), None), (((TOPIC, Operation.DESCRIBE),), READ)):
        secured.allow(*needs)
        found: Any = secured.ask(ALICE, deletes, DELETE_VERSION)
        assert [(each.name, each.error_code) for each in found.responses] == [(name, DENIED)]


def test_topics_are_created_under_the_permissions_of_the_client(secured: Secured) -> None:
    secured.allow((TOPIC, Operation.DESCRIBE))
    answer: Any = secured.ask(ALICE, described("auto", creates=True), DESCRIBE_VERSION)
    assert [each.error_code for each in answer.topics] == [DENIED]
    secured.node.run(0.5)
    assert "auto" not in secured.node.cluster.newest_image().topic_ids
    secured.allow((TOPIC, Operation.CREATE))
    answer = secured.ask(ALICE, described("auto", creates=True), DESCRIBE_VERSION)
    assert DENIED not in [each.error_code for each in answer.topics]
    secured.node.run(0.5)
    assert "auto" in secured.node.cluster.newest_image().topic_ids


def test_a_new_topic_shows_its_configs_only_with_the_permission(secured: Secured) -> None:
    secured.allow((TOPIC, Operation.CREATE))
    answer: Any = secured.ask(ALICE, create("hidden"), 7)
    (topic,) = answer.topics
    assert (topic.error_code, topic.topic_config_error_code) == (ErrorCode.NONE, DENIED)
    assert (topic.num_partitions, topic.configs) == (-1, ())
    answer = secured.ask(ROOT, create("shown"), 7)
    assert answer.topics[0].num_partitions == 1 and answer.topics[0].configs


def test_groups_are_listed_by_permission(secured: Secured) -> None:
    join = BUILDERS[ApiKey.JOIN_GROUP](secured.world, 3)
    raw = secured.connect(ROOT)
    secured.node.ask(raw, join, 3)
    listing = group_admin.ListGroupsRequest()
    names = []
    for needs in ((), ((GROUPS, Operation.DESCRIBE),), ((CLUSTER, Operation.DESCRIBE),)):
        secured.forget()
        secured.allow(*needs)
        answer: Any = secured.ask(ALICE, listing, 3)
        names.append({each.group_id for each in answer.groups})
    assert names == [set(), {"joined-3"}, {"joined-3"}]
    raw.link.abort()


def test_a_producer_without_transactions_needs_any_topic(secured: Secured) -> None:
    request = init_producer_id.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1000
    )
    for needs, error in (
        (((CLUSTER, Operation.IDEMPOTENT_WRITE),), ErrorCode.NONE),
        (((TOPIC, Operation.READ),), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ):
        secured.allow(*needs)
        answer: Any = secured.ask(ALICE, request, 3)
        assert answer.error_code == error
        secured.forget()


def test_a_group_of_another_prefix_is_hidden(secured: Secured) -> None:
    prefix = acl(
        resource_type=GROUPS, resource_name="app-", resource_pattern_type=PatternType.PREFIXED
    )
    assert created(secured, prefix) == [0]
    request = find_coordinator.FindCoordinatorRequest(coordinator_keys=("app-1", GROUP))
    answer: Any = secured.ask(ALICE, request, 4)
    refused = {each.key: each.error_code for each in answer.coordinators}
    assert refused == {"app-1": 0, GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED}


def test_acls_of_another_host_do_not_apply(secured: Secured) -> None:
    raw = secured.connect(ALICE)
    host = raw.link.peer
    assert created(secured, acl(host="192.0.2.1")) == [0]
    answer: Any = secured.node.ask(raw, described(READ), DESCRIBE_VERSION)
    assert [each.error_code for each in answer.topics] == [DENIED], host


def produced(*names: str, acks: int = -1) -> produce.ProduceRequest:
    return produce.ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=tuple(
            produce.TopicProduceData(
                name=name,
                partition_data=(produce.PartitionProduceData(index=0, records=batch()),),
            )
            for name in names
        ),
    )


def test_a_produce_is_refused_for_each_topic(secured: Secured) -> None:
    """The results keep the order of the request. With acks=0 an error closes the connection."""
    assert created(secured, acl(operation=Operation.WRITE)) == [0]
    request = produced(WRITTEN, READ, "missing")
    answer: Any = secured.ask(ALICE, request, PRODUCE_VERSION)
    found = [(each.name, each.partition_responses[0].error_code) for each in answer.responses]
    assert found == [(WRITTEN, DENIED), (READ, 0), ("missing", DENIED)]
    raw = secured.connect(ALICE)
    secured.node.send(raw, produced(WRITTEN, acks=0), PRODUCE_VERSION, 1)
    secured.node.until(lambda: raw.closed)


def test_a_fetch_session_ends_to_read_when_a_deny_is_replayed(secured: Secured) -> None:
    """A consumer that goes on with its session is checked with each fetch."""
    assert created(secured, acl()) == [0]
    raw = secured.connect(ALICE)
    partition = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    first = fetch.FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_epoch=0,
        topics=tuple(
            fetch.FetchTopic(topic=name, partitions=(partition,)) for name in (WRITTEN, READ)
        ),
    )
    answer: Any = secured.node.ask(raw, first, FETCH_VERSION)
    found = {each.topic: each.partitions[0] for each in answer.responses}
    assert (found[WRITTEN].error_code, found[READ].error_code) == (DENIED, 0)
    assert not found[WRITTEN].records and found[READ].records
    assert created(secured, acl(permission_type=PermissionType.DENY)) == [0]
    rest = fetch.FetchRequest(
        max_wait_ms=0, min_bytes=0, session_id=answer.session_id, session_epoch=1, topics=()
    )
    answer = secured.node.ask(raw, rest, FETCH_VERSION)
    errors = {each.topic: each.partitions[0].error_code for each in answer.responses}
    assert errors == {WRITTEN: DENIED, READ: DENIED}


@pytest.mark.parametrize(
    "fields",
    [
        {"resource_type": 1},
        {"resource_type": 0},
        {"resource_type": 99},
        {"resource_pattern_type": 1},
        {"resource_pattern_type": 2},
        {"operation": 0},
        {"operation": 1},
        {"operation": 99},
        {"permission_type": 1},
        {"resource_name": ""},
        {"resource_type": CLUSTER},
        {"principal": "alice"},
    ],
)
def test_an_acl_without_meaning_is_refused_alone(secured: Secured, fields: dict[str, Any]) -> None:
    """The other ACLs of the request are created."""
    assert created(secured, acl(), acl(**fields), acl(host="1.2.3.4")) == [0, 42, 0]
    assert len(secured.node.cluster.newest_image().acls) == 2


def test_an_acl_that_exists_is_created_once(secured: Secured) -> None:
    assert created(secured, acl(), acl()) == [0, 0]
    assert created(secured, acl()) == [0]
    assert len(secured.node.cluster.newest_image().acls) == 1


@pytest.mark.parametrize("port", [BROKER_PORT, CONTROLLERS_PORT], ids=["broker", "controller"])
def test_acls_are_described_and_deleted_by_filters(secured: Secured, port: Any) -> None:
    literal, prefixed = acl(), acl(resource_name="re", resource_pattern_type=PatternType.PREFIXED)
    assert created(secured, literal, prefixed, acl(principal="User:bob")) == [0, 0, 0]
    common: dict[str, Any] = {"operation": 1, "permission_type": 1, "host_filter": None}
    wanted = acls.DescribeAclsRequest(
        resource_type_filter=TOPIC,
        resource_name_filter=READ,
        pattern_type_filter=PatternType.MATCH,
        principal_filter=str(ALICE),
        **common,
    )
    answer: Any = secured.ask(ROOT, wanted, 3, port)
    assert [(each.resource_name, each.pattern_type) for each in answer.resources] == [
        (READ, PatternType.LITERAL),
        ("re", PatternType.PREFIXED),
    ]
    one = acls.DeleteAclsFilter(
        resource_type_filter=TOPIC,
        resource_name_filter=READ,
        pattern_type_filter=PatternType.LITERAL,
        principal_filter=None,
        **common,
    )
    unknown = acls.DeleteAclsFilter(
        resource_type_filter=0, resource_name_filter=None, principal_filter=None, **common
    )
    deletes = acls.DeleteAclsRequest(filters=(one, unknown, one))
    answer = secured.ask(ROOT, deletes, 3, port)
    found = [(each.error_code, len(each.matching_acls)) for each in answer.filter_results]
    assert found == [(0, 2), (42, 0), (0, 2)]
    secured.node.run(0.2)
    (left,) = secured.node.cluster.newest_image().acls.by_id.values()
    assert left.resource_name == "re"


def test_refusals_are_logged_in_kafkas_form(
    secured: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    """Of equal refusals, one is logged in ten seconds."""
    secured.node.run(11.0)
    raw = secured.connect(NOBODY)
    with caplog.at_level(logging.INFO, logger="kafka.authorizer.logger"):
        for _ in range(3):
            secured.node.ask(raw, described(READ), DESCRIBE_VERSION)
        secured.node.run(11.0)
        secured.node.ask(raw, described(READ), DESCRIBE_VERSION)
    lines = [each.message for each in caplog.records if each.name == "kafka.authorizer.logger"]
    assert len(lines) == 2 and lines[1].endswith("(2 more like it were not logged)")
    assert lines[0].startswith("Principal = User:nobody is Denied operation = DESCRIBE from host =")
    assert lines[0].endswith(
        f"on resource = Topic:LITERAL:{READ} for request = Metadata with resourceRefCount = 1 "
        "based on rule DefaultDeny"
    )


def test_decisions_and_acls_are_counted() -> None:
    """A filtered list counts for none."""
    with secured_cluster() as secured:
        processes: Any = [each.process for each in secured.node.cluster.machines.values()]
        (broker,) = (each.broker for each in processes if each.broker is not None)
        (controller,) = (each.controller for each in processes if each.controller is not None)

        def counts() -> dict[tuple[str, str], float]:
            families = (*broker_metrics(broker), *controller._metrics())
            return {
                (sample.name, sample.labels.get("result", "")): sample.value
                for family in families
                if "authorizer" in family.name
                for sample in family.samples
            }

        before = counts()
        secured.ask(NOBODY, described(READ), DESCRIBE_VERSION)
        secured.ask(NOBODY, described(), DESCRIBE_VERSION)
        secured.ask(NOBODY, create("never"), 5)
        assert created(secured, acl()) == [0]
        after = counts()
        changed = {
            name: after[name] - before[name] for name in after if after[name] != before[name]
        }
        assert changed == {
            ("quorate_broker_authorizer_decisions_total", "denied"): 1,
            ("quorate_controller_authorizer_decisions_total", "denied"): 1,
            ("quorate_controller_authorizer_decisions_total", "allowed"): 1,
            ("quorate_broker_authorizer_acls", ""): 1,
            ("quorate_controller_authorizer_acls", ""): 1,
        }
