"""The persistent map of the image, rpds-py's HashTrieMap. All other modules import it from here.

Its iteration order depends on hashes. Code that writes records or output must sort the keys first.
"""

from rpds import HashTrieMap as PersistentMap

__all__ = ["PersistentMap"]
