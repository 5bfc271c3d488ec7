"""The producer and the consumer that must not notice an attack, as their supervisor sees them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.attacks.bystander import RATE_PER_S
from tests.clients.librdkafka import admin, create_topic

ROLES = ("producer", "consumer")
PARTITIONS = 6
CAUGHT_UP_S = 60.0
END_S = 70.0
FIRST_S = 60.0
WARM = 200
"""Records that both clients have to handle before anything is measured."""
MAX_LATENCY_RATIO = 3.0
NOISE_FLOOR_MS = 10.0
"""A quiet p99 below this counts as this: a scheduler's slice is as long."""
RULE = (
    f"p99 beside an attack is at most {MAX_LATENCY_RATIO:.0f} times its quiet value, and a quiet "
    f"value below {NOISE_FLOOR_MS:.0f} ms counts as {NOISE_FLOOR_MS:.0f} ms"
)
"""The bound on latency, for verdicts and for docs/protocol/attacks.md."""
POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Window:
    """The two clients' latencies and errors between two moments of the monotonic clock."""

    produced: int
    consumed: int
    produce_p99_ms: float
    consume_p99_ms: float
    errors: tuple[str, ...]
    seconds: float

    def silent(self, least_share: float) -> list[str]:
        """Return a sentence for each client that handled less than `least_share` of the records
        that were due. A client that hangs has neither errors nor latencies."""
        due = RATE_PER_S * self.seconds
        counts = {"producer": self.produced, "consumer": self.consumed}
        return [
            f"the {role} handled {count} of {due:.0f} records in {self.seconds:.0f} s"
            for role, count in counts.items()
            if count < least_share * due
        ]

    def p99_ratio(self, quiet: Window) -> float:
        """Return the worse of the two clients' p99 in units of its quiet value, see RULE."""
        pairs = (
            (self.produce_p99_ms, quiet.produce_p99_ms),
            (self.consume_p99_ms, quiet.consume_p99_ms),
        )
        return max(now / max(before, NOISE_FLOOR_MS) for now, before in pairs)


def percentile(values: list[float], share: float) -> float:
    """Return the smallest value that at least `share` of the values do not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


class Bystanders:
    def __init__(
        self, bootstrap: str, directory: Path, topic: str, settings: Mapping[str, str]
    ) -> None:
        self.topic = topic
        self._settings = json.dumps(dict(settings))
        self._bootstrap = bootstrap
        self._files = {role: directory / f"{topic}.{role}" for role in ROLES}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        for role in ROLES:
            file = self._files[role]
            file.write_text("")
            command = [sys.executable, "-m", "tests.attacks.bystander", role, self._bootstrap]
            command += [self.topic, str(PARTITIONS), str(file)]
            with open(file.with_suffix(f".{role}.err"), "wb") as err:
                process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=err)
            self._processes[role] = process
            assert process.stdin is not None
            with process.stdin as settings:  # no argument, because it may hold a password
                settings.write(self._settings.encode())
        deadline_s = time.monotonic() + FIRST_S
        while any(len(self._lines(role, "ok")) < WARM for role in ROLES):
            self.require_running()
            assert time.monotonic() < deadline_s, "the well-behaved clients do not get going"
            time.sleep(POLL_S)

    def require_running(self) -> None:
        for role, process in self._processes.items():
            assert process.poll() is None, f"the well-behaved {role} ended: {process.returncode}"

    def window(self, begin_s: float, end_s: float) -> Window:
        latencies: dict[str, list[float]] = {}
        errors: list[str] = []
        for role in ROLES:
            latencies[role] = [
                int(latency) / 1e6
                for when, latency in self._lines(role, "ok")
                if begin_s <= int(when) / 1e9 <= end_s
            ]
            errors += [
                f"{role}: {text}"
                for when, text in self._lines(role, "error")
                if begin_s <= int(when) / 1e9 <= end_s
            ]
        return Window(
            produced=len(latencies["producer"]),
            consumed=len(latencies["consumer"]),
            produce_p99_ms=percentile(latencies["producer"], 0.99),
            consume_p99_ms=percentile(latencies["consumer"], 0.99),
            errors=tuple(errors),
            seconds=end_s - begin_s,
        )

    def stop(self) -> list[str]:
        """Stop the producer, let the consumer catch up, and return every difference and error."""
        self._end("producer")
        sent = self._counts("producer")
        deadline_s = time.monotonic() + CAUGHT_UP_S
        while len(self._lines("consumer", "ok")) < sum(sent.values()):
            if time.monotonic() > deadline_s:
                break
            time.sleep(POLL_S)
        self._end("consumer")
        read = self._counts("consumer")
        wrong = [
            f"{self.topic}-{partition}: {count} records acknowledged, {read.get(partition)} read"
            for partition, count in sent.items()
            if read.get(partition) != count
        ]
        return wrong + [text for role in ROLES for _, text in self._lines(role, "error")]

    def kill(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()

    def _end(self, role: str) -> None:
        process = self._processes[role]
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _counts(self, role: str) -> dict[int, int]:
        return {int(partition): int(count) for partition, count in self._lines(role, "count")}

    def _lines(self, role: str, kind: str) -> list[tuple[str, str]]:
        found = []
        for line in self._files[role].read_text().splitlines():
            word, _, rest = line.partition(" ")
            first, _, second = rest.partition(" ")
            if word == kind and second:
                found.append((first, second))
        return found


@contextmanager
def bystanders(
    bootstrap: str, directory: Path, topic: str, settings: Mapping[str, str] | None = None
) -> Iterator[Bystanders]:
    """Run both clients on a new topic, with more settings of librdkafka; nothing is left of them
    afterwards."""
    settings = settings or {}
    create_topic(admin(bootstrap, **settings), topic, PARTITIONS, 3)
    both = Bystanders(bootstrap, directory, topic, settings)
    try:
        both.start()
        yield both
    finally:
        both.kill()
