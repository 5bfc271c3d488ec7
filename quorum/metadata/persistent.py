"""The persistent map of the image, hidden behind one name (rpds-py: wheels for every supported
Python).

Iteration order follows the hash and so is never written anywhere unsorted.
"""

from rpds import HashTrieMap as PersistentMap

__all__ = ["PersistentMap"]
