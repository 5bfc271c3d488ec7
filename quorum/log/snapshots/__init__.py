"""Snapshot files of the metadata log: written, frozen, listed and read in chunks."""
