"""Finds the mutable containers of the objects that a running node reaches.

`reached` walks from the node's objects along attributes, containers, closures, bound methods and
generators, and returns the instances of Quorate's classes. `declared` reads the source of a class,
and returns the attributes that the class makes a mutable container. A container therefore counts
even while it is None or empty. A container that no reached class declares, because a function made
it, is found at its attribute (`undeclared`).
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from types import (
    AsyncGeneratorType,
    CellType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodType,
)
from typing import Any

from sortedcontainers import SortedDict, SortedList, SortedSet  # type: ignore[import-untyped]

PACKAGE = "quorate."
CONTAINERS = (list, dict, set, deque, bytearray, SortedDict, SortedList, SortedSet)
NAMES = frozenset(
    (
        *(each.__name__ for each in CONTAINERS),
        *("defaultdict", "OrderedDict", "Counter", "WeakKeyDictionary", "WeakSet"),
        *("WeakValueDictionary", "Queue", "array"),
    )
)
READ_ONLY = ("Mapping", "Sequence", "Collection", "Iterable", "Buffer", "Annotated")
"""The beginnings of annotations of attributes that are never changed in place."""


def is_ours(kind: type) -> bool:
    return kind.__module__.startswith(PACKAGE)


def reached(roots: Iterable[object]) -> list[object]:
    """Return the instances of Quorate's classes that can be reached from `roots`."""
    seen: dict[int, object] = {}
    found = []
    left = list(roots)
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, (type, str, bytes, int, float)):
            continue
        seen[id(each)] = each
        if is_ours(type(each)):
            found.append(each)
        left.extend(parts(each))
    return found


def parts(each: Any) -> Iterator[object]:
    """Yield the objects that `each` refers to, without modules, classes and foreign objects."""
    if isinstance(each, dict):
        yield from tuple(each.keys())
        yield from tuple(each.values())
    elif isinstance(each, (list, tuple, set, frozenset, deque)):
        yield from tuple(each)
    elif isinstance(each, FunctionType):
        yield from each.__closure__ or ()
        yield from each.__defaults__ or ()
    elif isinstance(each, CellType):
        try:
            yield each.cell_contents
        except ValueError:
            return
    elif isinstance(each, MethodType):
        yield each.__self__
        yield each.__func__
    elif isinstance(each, partial):
        yield each.func
        yield each.args
        yield each.keywords
    elif isinstance(each, GeneratorType):
        yield from each.gi_frame.f_locals.values() if each.gi_frame else ()
    elif isinstance(each, CoroutineType):
        yield from each.cr_frame.f_locals.values() if each.cr_frame else ()
    elif isinstance(each, AsyncGeneratorType):
        yield from each.ag_frame.f_locals.values() if each.ag_frame else ()
    elif is_ours(type(each)):
        yield from attributes(each).values()
    if is_ours(type(each)) and isinstance(each, CONTAINERS):
        yield from attributes(each).values()


def attributes(each: object) -> dict[str, object]:
    """Return the values of the attributes of an instance, with those in slots."""
    values = dict(getattr(each, "__dict__", {}))
    for kind in type(each).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{kind.__name__.lstrip('_')}{name}"
            if name not in ("__dict__", "__weakref__") and hasattr(each, name):
                values[name] = getattr(each, name)
    return values


def declared(kind: type) -> dict[str, str]:
    """Return the mutable containers that a class and its bases declare: "Class.attribute" by the
    name of the attribute."""
    found: dict[str, str] = {}
    for each in kind.__mro__:
        if is_ours(each):
            for name in containers_of(class_body(each)):
                found.setdefault(name, f"{each.__qualname__}.{name}")
    return found


@cache
def module_classes(module: str) -> dict[str, ast.ClassDef]:
    """Return the class definitions of a module by their qualified names."""
    found: dict[str, ast.ClassDef] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                found[prefix + child.name] = child
                visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                visit(child, f"{prefix}{child.name}.<locals>.")

    file = sys.modules[module].__file__
    if file is not None and file.endswith(".py"):
        visit(ast.parse(Path(file).read_text()), "")
    return found


def class_body(kind: type) -> ast.ClassDef | None:
    return module_classes(kind.__module__).get(kind.__qualname__)


def containers_of(body: ast.ClassDef | None) -> Iterator[str]:
    """Yield the names of the attributes that the class's code makes mutable containers."""
    if body is None:
        return
    for statement in body.body:
        if isinstance(statement, ast.AnnAssign) and is_container_type(statement.annotation):
            yield ast.unparse(statement.target)
    for node in ast.walk(body):
        if isinstance(node, ast.AnnAssign):
            targets: list[ast.expr] = [node.target]
            made = is_container_type(node.annotation) or makes_container(node.value)
        elif isinstance(node, ast.Assign):
            targets = list(node.targets)
            made = makes_container(node.value)
        else:
            continue
        for target in targets:
            owner, _, attribute = ast.unparse(target).rpartition(".")
            if made and owner == "self" and attribute.isidentifier():
                yield attribute


def read_only(kind: type) -> frozenset[str]:
    """Return the attributes that the class declares with a type that no code can change."""
    return frozenset(
        name
        for each in kind.__mro__
        for name, annotation in inspect.get_annotations(each).items()
        if is_ours(each) and str(annotation).partition("[")[0] in READ_ONLY
    )


def is_container_type(annotation: ast.expr) -> bool:
    """Return True if the annotation is a mutable container or a union with one."""
    if isinstance(annotation, ast.BinOp):
        return is_container_type(annotation.left) or is_container_type(annotation.right)
    if isinstance(annotation, ast.Subscript):
        return is_container_type(annotation.value)
    if isinstance(annotation, ast.Attribute):
        return annotation.attr in NAMES
    return isinstance(annotation, ast.Name) and annotation.id in NAMES


def makes_container(value: ast.expr | None) -> bool:
    """Return True if the expression creates a mutable container."""
    if isinstance(value, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)):
        return True
    if isinstance(value, ast.Call):
        function = value.func
        name = function.attr if isinstance(function, ast.Attribute) else None
        name = function.id if isinstance(function, ast.Name) else name
        return name in NAMES
    return False


def all_containers(roots: Iterable[object]) -> dict[str, type]:
    """Return "Class.attribute" of each mutable container that can be reached, with the class."""
    found: dict[str, type] = {}
    known: set[int] = set()
    objects = reached(roots)
    kinds: dict[type, dict[str, str]] = {}
    for each in objects:
        if type(each) not in kinds:
            kinds[type(each)] = declared(type(each))
        names = kinds[type(each)]
        values = attributes(each)
        for name, title in names.items():
            found[title] = type(each)
            known.add(id(values.get(name)))
    fixed = {kind: read_only(kind) for kind in kinds}
    for each in objects:
        for name, value in attributes(each).items():
            is_made_elsewhere = isinstance(value, CONTAINERS) and id(value) not in known
            if is_made_elsewhere and name not in fixed[type(each)]:
                found[f"{type(each).__qualname__}.{name}"] = type(each)
    return found
