#!/usr/bin/env bash
# Has the published modules of a tree require each other at a version:
#   scripts/require.sh TREE vX.Y.Z
set -euo pipefail
tree=$1 version=$2 go=${GO:-go} m=github.com/weir-go/weir
(cd "$tree/store/redisstore" && "$go" mod edit -require="$m@$version")
(cd "$tree/sink/s3sink" && "$go" mod edit -require="$m@$version")
(cd "$tree/deadletter/sqsletters" && "$go" mod edit -require="$m@$version")
(cd "$tree/otelweir" && "$go" mod edit -require="$m@$version")
(cd "$tree/promweir" && "$go" mod edit -require="$m@$version")
(cd "$tree/cmd/weir" && "$go" mod edit -require="$m@$version" -require="$m/sink/s3sink@$version" -require="$m/deadletter/sqsletters@$version" -require="$m/promweir@$version" -require="$m/store/redisstore@$version")
