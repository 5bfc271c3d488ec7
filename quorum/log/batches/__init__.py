"""Record batches in format v2: read, made and checked, from memory and from a file.

- batch.py, record.py: the batch and its records.
- compression.py: the codecs, bounded; recompression.py: a batch in another codec.
- record_framing.py, compression_frames.py: cheap checks of a payload that a client sent.
- batch_file.py: a file of batches.
"""
