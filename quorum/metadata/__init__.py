"""The cluster metadata as a state machine: records, replay, the image, and snapshots.

The package turns bytes of the metadata log, or of a snapshot, into an immutable `MetadataImage`. It
also computes an `ImageDelta`, the changes between two images, and writes the bytes of a snapshot.
Standby controllers and brokers replay only committed records. The active controller also replays
its own records, before they are committed.

Decisions that hold for the whole package:

- Records are the only way in which the image changes. The active controller, standbys, brokers,
  restarts, snapshot loads and reads of old offsets all use `replay`.
- An image is a value. `replay` returns the next image, which shares all unchanged parts with the
  previous one.
- Everything is deterministic. The same records give the same image, and the same image gives the
  same snapshot bytes, on every node.
- A record that a node does not understand, or that contradicts the image, raises an error. It is
  never skipped, because every later image would be wrong. Only unknown tagged fields are skipped
  (KIP-482).
- Work over a whole image is done in steps (`IncrementalWork`), because a million partitions take
  seconds.
- The package reads and writes no files and no clock. Callers pass bytes and times.

Files in reading order:

- records.py, acl_records.py, scram_records.py, causes.py, unsupported_records.py: the record
  schemas, the cause of a change, and records of features that Quorate does not have
- framing.py, batches.py, read_back.py: records to and from bytes, one by one and in batches
- checked_batches.py: the batches of a leader, from the check before the append to the replay
- image.py, acls.py, persistent_map.py, registration_bounds.py, internal_topics.py: the image
- cluster_events.py, isr_events.py, event_texts.py: the log lines about a decision's records
- replay.py, image_builder.py, delta.py: from one image to the next
- loader.py: the log with its metadata transactions
- snapshot.py, snapshot_file.py: an image as records, and as the bytes of a snapshot file
- difference.py, pace.py: the delta between two images, and the pauses of long work
- json_form.py, json_text.py, record_text.py: records as JSON and as text, for tools
- redaction.py: records without their secrets, for everything that shows them
- errors.py: the errors

Sources of the rules:

- Apache Kafka 4.1: the record schemas and the metadata image
- KIP-500 and KIP-631 (metadata in a Raft log), KIP-630 (snapshots)
- KIP-482 (tagged fields), KIP-858 (directories)
- KIP-868 (metadata transactions), KIP-966 (eligible leader replicas)
"""
