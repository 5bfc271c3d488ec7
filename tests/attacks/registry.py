"""The list of attacks. A module that defines some registers them when it is imported."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module

from tests.attacks.target import Target

MODULES = (
    "unencodable",
    "poison",
    "bombs",
    "crowds",
    "steps",
    "node_port",
    "memory",
    "connections",
    "logins",
    "node_links",
    "fault_socket",
)
ITEMS = range(1, 10)
"""The items of the list of defects."""
WITHOUT_ATTACK = {
    8: "A controller whose metadata directory is gone must not vote. Bytes to a port cannot remove "
    "a directory, so this item has a test in place of an attack: "
    "tests/clients/test_up_partly.py::test_a_controller_that_lost_its_metadata_directory_is_restored"
}
"""Why an item has no attack, and the test on real processes that it has instead."""
ATTACK_TIMEOUT_S = 600.0
"""The longest that one attack may take, quick or not. `crowded-others` is the longest: it computes
for 60 s itself, at a low priority. With other jobs beside it, it took 240 s."""

Run = Callable[[Target], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    item: int
    """The item of the list of defects that this attack once proved."""
    about: str
    run: Run
    needs_faults: bool = False
    """True if the attack needs nodes that run with `--faults`."""


ATTACKS: dict[str, Attack] = {}


def attack(item: int, *, needs_faults: bool = False) -> Callable[[Run], Run]:
    """Register a coroutine function under its own name; its docstring says what it does."""

    def register(run: Run) -> Run:
        name = run.__name__.replace("_", "-")
        assert name not in ATTACKS, f"two attacks are called {name}"
        about = " ".join((run.__doc__ or "").split())
        assert about, f"attack {name} has no docstring"
        ATTACKS[name] = Attack(name, item, about, run, needs_faults)
        return run

    return register


def attacks() -> dict[str, Attack]:
    for each in MODULES:
        import_module(f"tests.attacks.{each}")
    return ATTACKS
