"""Frozen dataclasses that a reader fills field by field.

Each message and each record is a frozen dataclass. Its `__init__` needs four times as many
processor instructions as the way of this module (measured on Python 3.11 with four fields).
"""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def unfrozen(cls: type) -> type[Any]:
    """Return a class that has the slots of `cls` and lets a reader assign them.

    A reader makes an instance, assigns all fields, and then assigns `cls` to `__class__`. From then
    on the object is an instance of `cls`, and frozen. Python allows this because both classes have
    the same bases and the same slots. `cls` must have slots and no `__dict__`."""
    members = {
        "__slots__": cls.__slots__,  # type: ignore[attr-defined]
        # a base may be a frozen dataclass, too
        "__init__": object.__init__,
        "__setattr__": object.__setattr__,
    }
    return type(cls.__name__, cls.__bases__, members)
