"""Random sets of ACLs with questions about them, for Quorate, for a slow oracle and for Kafka.

A question is a tuple. `line_of` has its form for `tests/kafka/AclDecisions.java`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from quorate.quorum.authorization.authorizer import Authorizer, AuthorizerSettings
from quorate.quorum.authorization.decision import Action
from quorate.quorum.authorization.filters import AclFilter, matches
from quorate.quorum.ids import Uuid
from quorate.quorum.incremental_work import finished
from quorate.quorum.metadata.acls import EMPTY, Acl, AclSet
from quorate.quorum.principal import USER, Principal
from quorate.quorum.protocol.acl_codes import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)

NAMES = ("a", "ab", "abc", "b", "*", "hardcode", "h")
USERS = ("alice", "bob", "root")
HOSTS = ("10.0.0.1", "10.0.0.2")
TYPES = (ResourceType.TOPIC, ResourceType.GROUP)
OPERATIONS = tuple(each for each in Operation if each > Operation.ALL)


@dataclass(frozen=True, slots=True)
class Question:
    """One question: `kind` is ask, any or filter. The fields are in the order of the program."""

    kind: str
    fields: tuple[object, ...]

    def line(self) -> str:
        """Return the line for Kafka's program."""
        return "\t".join((self.kind, *("-" if each is None else str(each) for each in self.fields)))


@dataclass(frozen=True, slots=True)
class Case:
    """Settings, ACLs and questions."""

    settings: AuthorizerSettings
    acls: tuple[Acl, ...]
    questions: tuple[Question, ...]

    def lines(self) -> Iterable[str]:
        """Yield the lines for Kafka's program."""
        users = ";".join(sorted(self.settings.super_users))
        yield f"case\t{users}\t{'true' if self.settings.allow_everyone else 'false'}"
        for acl in self.acls:
            yield "\t".join(("acl", *(str(each) for each in acl)))
        yield "ready"
        for question in self.questions:
            yield question.line()


def random_acl(random: Random) -> Acl:
    """Return an ACL that CreateAcls accepts."""
    pattern = random.choice((PatternType.LITERAL, PatternType.PREFIXED))
    return Acl(
        int(random.choice(TYPES)),
        int(pattern),
        random.choice(NAMES),
        random.choice(("User:alice", "User:bob", "User:*")),
        random.choice((*HOSTS, "*", "*")),
        int(random.choice((*OPERATIONS, Operation.ALL, Operation.READ, Operation.WRITE))),
        int(random.choice((PermissionType.ALLOW, PermissionType.ALLOW, PermissionType.DENY))),
    )


def random_case(random: Random) -> Case:
    """Return a case with a few ACLs, so that most rules decide some of its questions."""
    acls = tuple(sorted({random_acl(random) for _ in range(random.randrange(9))}))
    settings = AuthorizerSettings(
        frozenset({"User:root"}) if random.random() < 0.5 else frozenset(), random.random() < 0.3
    )
    questions = []
    for _ in range(30):
        at = random.choice(USERS), random.choice(HOSTS)
        operation, kind = random.choice(OPERATIONS), random.choice(TYPES)
        name = random.choice(("a", "ab", "abc", "abcd", "b", "c"))
        questions.append(Question("ask", (*at, int(operation), int(kind), name)))
    for user in USERS:
        for host in HOSTS:
            for operation in (Operation.WRITE, Operation.READ, Operation.DESCRIBE):
                fields = (user, host, int(operation), int(ResourceType.TOPIC))
                questions.append(Question("any", fields))
    questions += [Question("filter", tuple(random_filter(random))) for _ in range(10)]
    return Case(settings, acls, tuple(questions))


def random_filter(random: Random) -> AclFilter:
    """Return a filter with some open fields."""
    return AclFilter(
        int(random.choice((ResourceType.ANY, *TYPES))),
        int(random.choice(tuple(PatternType))),
        random.choice((None, *NAMES)),
        random.choice((None, None, "User:alice", "User:*")),
        random.choice((None, None, "*", HOSTS[0])),
        int(random.choice((Operation.ANY, Operation.ANY, Operation.ALL, Operation.READ))),
        int(random.choice(tuple(PermissionType))),
    )


def acl_set(acls: Iterable[Acl]) -> AclSet:
    """Return the set of these ACLs, with made-up ids."""
    found = EMPTY
    for number, acl in enumerate(acls):
        found = found.with_acl(Uuid(number.to_bytes(16, "big")), acl)
    return found


def answers(case: Case) -> list[str]:
    """Return Quorate's answers, in the form of Kafka's program."""
    authorizer, acls = Authorizer(case.settings), acl_set(case.acls)
    return [answer(authorizer, acls, each) for each in case.questions]


def answer(authorizer: Authorizer, acls: AclSet, question: Question) -> str:
    """Return Quorate's answer to one question."""
    fields: tuple[object, ...] = question.fields
    if question.kind == "filter":
        wanted = AclFilter(*fields)  # type: ignore[arg-type]
        found = [",".join(map(str, each)) for each in acls.by_id.values() if matches(wanted, each)]
        return " ".join(sorted(found))
    user, host, operation, kind, *name = fields
    client = authorizer.client(Principal(USER, str(user)), str(host))
    code, resource = Operation(int(str(operation))), ResourceType(int(str(kind)))
    if question.kind == "any":
        allowed = finished(authorizer.permits_any(acls, client, code, resource))
    else:
        allowed = authorizer.decide(acls, client, Action(code, resource, str(name[0]))).allowed
    return "ALLOWED" if allowed else "DENIED"
