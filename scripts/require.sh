#!/usr/bin/env bash
# Changes the go.mod files of the published modules in TREE, so that the modules require each other
# at version vX.Y.Z:
#
#   scripts/require.sh TREE vX.Y.Z
set -euo pipefail
tree=$1 version=$2 go=${GO:-go} m=github.com/weir-go/weir
(cd "$tree/store/redisstore" && "$go" mod edit -require="$m@$version")
(cd "$tree/sink/s3sink" && "$go" mod edit -require="$m@$version")
(cd "$tree/deadletter/sqsletters" && "$go" mod edit -require="$m@$version")
(cd "$tree/otelweir" && "$go" mod edit -require="$m@$version")
(cd "$tree/promweir" && "$go" mod edit -require="$m@$version")
(cd "$tree/payload/s3payload" && "$go" mod edit -require="$m@$version")
(cd "$tree/payload/zstdpayload" && "$go" mod edit -require="$m@$version")
(cd "$tree/cmd/weir" && "$go" mod edit -require="$m@$version" -require="$m/sink/s3sink@$version" -require="$m/deadletter/sqsletters@$version" -require="$m/payload/zstdpayload@$version" -require="$m/promweir@$version" -require="$m/store/redisstore@$version")
