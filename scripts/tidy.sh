#!/usr/bin/env bash
# go mod tidy in every module. The published ones require a version of each other that may not be released yet, so that comes from a proxy of files made
# of this tree; its checksums are left out of go.sum, where they would change with each commit, until a release is prepared.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
version=$(awk '$1 == "github.com/weir-go/weir" { print $2 }' store/redisstore/go.mod)
"$go" run ./scripts/moduleproxy -version "$version" -out "$dir/proxy"
others="file://$("$go" env GOMODCACHE)/cache/download"
export GOPROXY="file://$dir/proxy,$others,$("$go" env GOPROXY)" GONOSUMDB=github.com/weir-go/weir GOWORK=off GOMODCACHE="$dir/cache" GOFLAGS=-modcacherw
for module in . store/redisstore sink/s3sink deadletter/sqsletters otelweir promweir cmd/weir internal/proof/integration; do
	(cd "$module" && "$go" mod tidy && sed -i '/^github\.com\/weir-go\/weir/d' go.sum)
done
