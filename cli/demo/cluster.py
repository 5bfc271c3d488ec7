"""The demo's cluster: started and stopped by `quorate`, hurt by kill -9."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from quorate.cli.client.admin import Admin, AdminSettings, check
from quorate.cli.cluster_dir import ClusterDir, ClusterEntry
from quorate.cli.metadata_quorum import describe_quorum
from quorate.config.listeners import parse_servers
from quorate.quorum.rpc.kafka.schemas import configs, topics

QUORATE = (sys.executable, "-m", "quorate.cli")
TOPIC_RESOURCE = 2
HEAL_TIMEOUT_S = 60.0


class DemoCluster:
    def __init__(self, root: Path) -> None:
        self.directory = ClusterDir(root / "cluster")
        self._children: list[subprocess.Popen[bytes]] = []

    @property
    def entry(self) -> ClusterEntry:
        return self.directory.read()

    def start(self) -> float:
        """A new cluster; the seconds until it was ready."""
        if self.directory.file.exists():
            subprocess.run((*QUORATE, "down", "--dir", self.directory.root), check=False)
        shutil.rmtree(self.directory.root, ignore_errors=True)
        begin_s = time.monotonic()
        subprocess.run(
            (*QUORATE, "up", "--dir", self.directory.root, "--port", "0", "--detach"),
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return time.monotonic() - begin_s

    def stop(self) -> None:
        subprocess.run((*QUORATE, "down", "--dir", self.directory.root), check=False)
        for child in self._children:
            child.wait()

    def admin(self, timeout_s: float = 30.0) -> Admin:
        servers = parse_servers("bootstrap", self.entry["bootstrap"].split(","))
        return Admin(AdminSettings(servers=servers, timeout_s=timeout_s))

    def create_topic(self, topic: str, partitions: int, replicas: int) -> None:
        wanted = topics.CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=replicas,
            assignments=(),
            configs=(topics.CreatableTopicConfig(name="min.insync.replicas", value="2"),),
        )
        admin = self.admin()
        answer = admin.change(
            topics.CreateTopicsRequest(topics=(wanted,)),
            topics.CreateTopicsResponse,
            lambda answer: [each.error_code for each in answer.topics],
        )
        admin.close()
        check(answer.topics[0].error_code, answer.topics[0].error_message)

    def leaders(self, topic: str) -> dict[int, int]:
        admin = self.admin()
        (described,) = admin.metadata([topic]).topics
        admin.close()
        return {each.partition_index: each.leader_id for each in described.partitions}

    def active_controller(self) -> int:
        admin = self.admin()
        leader = describe_quorum(admin).state.leader_id
        admin.close()
        return leader

    def kill(self, node_id: int) -> float:
        """kill -9; the moment of it."""
        nodes = (*self.entry["controllers"], *self.entry["brokers"])
        pid = next(node["pid"] for node in nodes if node["id"] == node_id)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        return time.monotonic()

    def restart(self, node_id: int) -> None:
        file = self.directory.node_file(node_id)
        with open(self.directory.node_log(node_id), "ab") as log:
            self._children.append(
                subprocess.Popen((*QUORATE, "server", file), stderr=log, start_new_session=True)
            )

    def change_a_config(self, topic: str, value: str) -> None:
        """One metadata write; returns when it is committed."""
        change = configs.IncrementalAlterableConfig(
            name="retention.ms", config_operation=0, value=value
        )
        resource = configs.IncrementalAlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=topic, configs=(change,)
        )
        request = configs.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        admin = self.admin()
        answer = admin.change(
            request,
            configs.IncrementalAlterConfigsResponse,
            lambda answer: [each.error_code for each in answer.responses],
            repeatable=True,
        )
        admin.close()
        check(answer.responses[0].error_code, answer.responses[0].error_message)

    def wait_healed(self, topic: str, replicas: int) -> bool:
        """Until every ISR is full again; False when that takes too long."""
        begin_s = time.monotonic()
        admin = self.admin()
        try:
            while time.monotonic() - begin_s < HEAL_TIMEOUT_S:
                (described,) = admin.metadata([topic]).topics
                if all(len(each.isr_nodes) == replicas for each in described.partitions):
                    return True
                time.sleep(0.1)
            return False
        finally:
            admin.close()
