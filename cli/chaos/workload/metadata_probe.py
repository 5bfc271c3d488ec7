"""A client that changes metadata during a whole run, so that its availability is known.

It sets retention.ms of the run's topic to a new value every `period_s`. A change that fails is sent
again, to another broker, until it is committed. The time that a change waits is an outage of
metadata. Repetition is harmless, because each value is set as a whole."""

from __future__ import annotations

import asyncio
import time
from array import array
from dataclasses import dataclass, field
from itertools import count

from quorate.cli.chaos.timeline.outage import Gap
from quorate.cli.chaos.workload.brokers import FAILURES, Brokers
from quorate.cli.chaos.workload.latencies import Samples
from quorate.cli.chaos.workload.writer import ANSWER_SLACK_MS, OUTAGE_S
from quorate.quorum.protocol.schemas.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)

PERIOD_S = 0.25
RETRY_S = 0.05
TOPIC_RESOURCE, SET = 2, 0
FIRST_VALUE_MS = 604_800_000
MIN_TIMEOUT_MS = 1000


@dataclass(slots=True)
class MetadataProbe:
    """The client of one run, owned by the event loop on which `start` is called."""

    brokers: Brokers
    timeout_ms: int
    period_s: float = PERIOD_S
    """The pause, in s, between two changes."""
    committed_s: array[float] = field(default_factory=lambda: array("d"))
    """The times at which a change was acknowledged, in s on the monotonic clock."""
    sent_s: float = 0.0
    """The time at which the last acknowledged change was first sent."""
    outages: list[Gap] = field(default_factory=list)
    """The times longer than OUTAGE_S for which a change waited, as those of partition 0."""
    latencies: Samples = field(default_factory=Samples)
    _task: asyncio.Task[None] | None = None
    _since_s: float | None = None

    def start(self) -> None:
        """Start the task that changes metadata."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop. A change that still waits counts as an outage up to now.

        Raise the unexpected error that ended the task, if there is one. A second call is allowed.
        """
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        if self._since_s is not None:
            self._waited(self._since_s)
            self._since_s = None
        if isinstance(ended, Exception):
            raise ended

    async def _run(self) -> None:
        for number in count(1):
            self._since_s = since_s = time.monotonic()
            request = self._request(FIRST_VALUE_MS + number)
            while not await self._committed(request):
                await asyncio.sleep(RETRY_S)
                await self.brokers.refresh()
            self.sent_s, self._since_s = since_s, None
            self.committed_s.append(time.monotonic())
            self.latencies.add(since_s, self.committed_s[-1])
            self._waited(since_s)
            await asyncio.sleep(self.period_s)

    async def _committed(self, request: IncrementalAlterConfigsRequest) -> bool:
        """Send the change to one broker after the other. Return True if one says it is committed.

        An error of a broker is no refusal: a forwarded change ends with a timeout."""
        timeout_ms = max(self.timeout_ms, MIN_TIMEOUT_MS) + ANSWER_SLACK_MS
        for node_id in self.brokers.shuffled():
            try:
                answer = await self.brokers.call(node_id, request, timeout_ms=timeout_ms)
            except FAILURES:
                continue
            if not answer.responses[0].error_code:
                return True
        return False

    def _request(self, value: int) -> IncrementalAlterConfigsRequest:
        change = IncrementalAlterableConfig(
            name="retention.ms", config_operation=SET, value=str(value)
        )
        resource = IncrementalAlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=self.brokers.topic, configs=(change,)
        )
        return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)

    def _waited(self, since_s: float) -> None:
        now_s = time.monotonic()
        if now_s - since_s > OUTAGE_S:
            self.outages.append(Gap(0, since_s, now_s))
