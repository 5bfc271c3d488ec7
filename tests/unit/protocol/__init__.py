"""Tests of quorum/protocol: codecs, schemas, bounds and tables."""
