#!/usr/bin/env bash
# Runs go mod tidy in every module. The published modules require each other at a version that may
# not be released yet. This version therefore comes from a module proxy of files that is made from
# this tree.
#
# The script removes weir's own checksums from go.sum, because they would change with each commit.
# scripts/release.sh adds them for a release.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
version=$(awk '$1 == "github.com/weir-go/weir" { print $2 }' store/redisstore/go.mod)
"$go" run ./scripts/moduleproxy -version "$version" -out "$dir/proxy"
others="file://$("$go" env GOMODCACHE)/cache/download"
export GOPROXY="file://$dir/proxy,$others,$("$go" env GOPROXY)" GONOSUMDB=github.com/weir-go/weir GOWORK=off GOMODCACHE="$dir/cache" GOFLAGS=-modcacherw
for module in . store/redisstore sink/s3sink deadletter/sqsletters otelweir promweir payload/s3payload payload/zstdpayload cmd/weir internal/proof/integration; do
	(cd "$module" && "$go" mod tidy && sed -i '/^github\.com\/weir-go\/weir/d' go.sum)
done
