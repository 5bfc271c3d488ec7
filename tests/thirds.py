"""The calls of a disk in three parts. The default tests fail every third call, and the long tests
all others, so that both together fail each call."""

from __future__ import annotations

import pytest

THIRDS = [
    pytest.param(1, id="calls 1 4 7"),
    pytest.param(2, id="calls 2 5 8", marks=pytest.mark.long),
    pytest.param(3, id="calls 3 6 9", marks=pytest.mark.long),
]
"""The first failing call; each third one after it fails in another run."""
