#!/bin/sh
# Run a node in a container: run-node.sh FILE [--override KEY=VALUE]...
#
# An empty volume is formatted for the cluster $CLUSTER_ID first. A volume that is lost is therefore replaced by an empty one without
# a question, which is safe for one node at a time only. On a machine of your own, format by hand (docs/deployment.md).
set -eu
file=$1
shift
quorate storage format --ignore-formatted --cluster-id "$CLUSTER_ID" --config "$file" "$@" >&2
exec quorate server "$file" "$@"
