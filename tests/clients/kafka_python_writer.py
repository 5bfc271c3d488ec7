"""A kafka-python producer that prints the leaders halfway, and the places of its records at the
end."""

from __future__ import annotations

import sys

from tests.clients.kafka_python import KafkaAdminClient, KafkaProducer

HALF = 50
ANSWER_TIMEOUT_S = 60


def main(bootstrap: str, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 3}})
    admin.wait_for_topics([topic])
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
    offsets = []
    for number in range(2 * HALF):
        if number == HALF:
            (partition,) = admin.describe_topics([topic])[0]["partitions"]
            sys.stdout.write(f"{partition['leader_id']}\n")
            sys.stdout.flush()
        sent = producer.send(topic, b"%d" % number, partition=0)
        offsets.append(sent.get(ANSWER_TIMEOUT_S).offset)
    producer.close()
    sys.stdout.write(" ".join(map(str, offsets)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
