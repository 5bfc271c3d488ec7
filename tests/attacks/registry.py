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
    "node_port",
    "memory",
    "connections",
    "node_links",
)
ATTACK_TIMEOUT_S = 120.0
"""The longest that one attack may take, quick or not."""

Run = Callable[[Target], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    item: int
    """The item of the list of defects that this attack once proved."""
    about: str
    run: Run


ATTACKS: dict[str, Attack] = {}


def attack(item: int) -> Callable[[Run], Run]:
    """Register a coroutine function under its own name; its docstring says what it does."""

    def register(run: Run) -> Run:
        name = run.__name__.replace("_", "-")
        assert name not in ATTACKS, f"two attacks are called {name}"
        about = " ".join((run.__doc__ or "").split())
        assert about, f"attack {name} has no docstring"
        ATTACKS[name] = Attack(name, item, about, run)
        return run

    return register


def attacks() -> dict[str, Attack]:
    for each in MODULES:
        import_module(f"tests.attacks.{each}")
    return ATTACKS
