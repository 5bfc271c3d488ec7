"""Timeouts and coalesced callbacks, on a clock that the test controls."""

from __future__ import annotations

from collections.abc import Callable

from quorate.broker.replication.appends.delayed_operations import (
    MAX_EMPTY_TICKS,
    MAX_TIMEOUT_MS,
    TICK_MS,
    CoalescedCallbacks,
    DelayedOperations,
)


class Handle:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class TurnedClock:
    def __init__(self) -> None:
        self.ms = 0
        self.timers: list[tuple[float, Callable[[], None], Handle]] = []
        self.soon: list[Callable[[], None]] = []

    def now_ms(self) -> int:
        return self.ms

    def now_us(self) -> int:
        return self.ms * 1000

    def wall_ms(self) -> int:
        return self.ms

    def cpu_ms(self) -> float:
        return 0.0

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Handle:
        handle = Handle()
        self.timers.append((self.ms + delay_ms, callback, handle))
        return handle

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def turn(self, to_ms: int) -> None:
        while due := [each for each in self.live() if each[0] <= to_ms]:
            when, callback, _ = entry = min(due, key=lambda each: each[0])
            self.timers.remove(entry)
            self.ms = int(when)
            callback()
        self.ms = to_ms

    def live(self) -> list[tuple[float, Callable[[], None], Handle]]:
        return [each for each in self.timers if not each[2].cancelled]


class Operation:
    def __init__(self, on_expire: Callable[[], None] = lambda: None) -> None:
        self.expired = 0
        self.on_expire = on_expire

    def expire(self) -> None:
        self.expired += 1
        self.on_expire()


def test_expires_in_time_and_once() -> None:
    clock = TurnedClock()
    delayed_operations = DelayedOperations(clock)
    early, late = Operation(), Operation()
    delayed_operations.add(late, 500)
    delayed_operations.add(early, 95)
    clock.turn(94)
    assert not early.expired
    clock.turn(95 + TICK_MS)
    assert (early.expired, late.expired) == (1, 0)
    clock.turn(600)
    assert (early.expired, late.expired) == (1, 1)
    assert len(delayed_operations) == 0


def test_no_operation_waits_longer_than_the_bound() -> None:
    clock = TurnedClock()
    delayed_operations = DelayedOperations(clock)
    operation = Operation()
    delayed_operations.add(operation, 2**31 - 1)
    clock.turn(MAX_TIMEOUT_MS + TICK_MS)
    assert operation.expired == 1


def test_what_is_removed_does_not_expire() -> None:
    clock = TurnedClock()
    delayed_operations = DelayedOperations(clock)
    operation = Operation()
    delayed_operations.remove(operation, delayed_operations.add(operation, 50))
    clock.turn(100)
    assert operation.expired == 0


def test_one_timer_however_many_wait() -> None:
    clock = TurnedClock()
    delayed_operations = DelayedOperations(clock)
    for timeout_ms in range(1000, 0, -1):
        delayed_operations.add(Operation(), timeout_ms)
    assert len(clock.live()) == 1
    assert len(delayed_operations) == 1000
    clock.turn(2000)
    assert len(delayed_operations) == 0


def test_expiring_may_remove_and_add_others() -> None:
    clock = TurnedClock()
    delayed_operations = DelayedOperations(clock)
    second = Operation()
    third = Operation()

    def expired() -> None:
        delayed_operations.remove(second, tick)
        delayed_operations.add(third, 30)

    delayed_operations.add(Operation(expired), 50)
    tick = delayed_operations.add(second, 50)
    clock.turn(60)
    assert (second.expired, third.expired) == (0, 0)
    clock.turn(120)
    assert third.expired == 1


def test_closed_deadlines_leave_no_timer() -> None:
    clock = TurnedClock()
    delayed_operations = DelayedOperations(clock)
    delayed_operations.add(Operation(), 50)
    delayed_operations.close()
    assert not clock.live()


def test_woken_once_in_order_of_the_first_wake() -> None:
    clock = TurnedClock()
    callbacks = CoalescedCallbacks(clock)
    ran: list[str] = []
    first, second = lambda: ran.append("first"), lambda: ran.append("second")
    for callback in (first, second, first):
        callbacks.wake(callback)
    assert len(clock.soon) == 1
    clock.soon.pop()()
    assert ran == ["first", "second"]
    callbacks.wake(first)
    clock.soon.pop()()
    assert ran == ["first", "second", "first"]


def test_removed_operations_leave_nothing_whatever_their_timeouts() -> None:
    """A client that chooses a new timeout for each request must not let the broker's memory
    grow."""
    clock = TurnedClock()
    delayed_operations = DelayedOperations(clock)
    long = Operation()
    delayed_operations.add(long, 2**31 - 1)
    for timeout_ms in range(0, MAX_TIMEOUT_MS, 60):
        operation = Operation()
        delayed_operations.remove(operation, delayed_operations.add(operation, timeout_ms))
    assert len(delayed_operations) == 1
    assert delayed_operations.kept <= 3 + 2 + MAX_EMPTY_TICKS
    assert len(clock.live()) == 1
    clock.turn(2**31 + TICK_MS)
    assert long.expired == 1
    assert delayed_operations.kept == 0


def test_a_tick_that_is_used_again_expires_once() -> None:
    clock = TurnedClock()
    delayed_operations = DelayedOperations(clock)
    operations = [Operation() for _ in range(5)]
    for operation in operations[:-1]:
        delayed_operations.remove(operation, delayed_operations.add(operation, 50))
    delayed_operations.add(operations[-1], 50)
    clock.turn(200)
    assert [each.expired for each in operations] == [0, 0, 0, 0, 1]
    assert delayed_operations.kept == 0
