#!/usr/bin/env bash
# Prepares a release and pushes nothing:
#
#	scripts/release.sh vX.Y.Z              uses this tree, which must have no uncommitted changes,
#	                                       and a dated section for the version in CHANGELOG.md
#	scripts/release.sh --dry-run vX.Y.Z    uses a copy of the last commit
#
# The script makes the nested modules require the version, builds dist/, and prints the commands
# that create the tags. A dry run also dates the changelog, commits and tags, but only in the copy.
# It then moves dist/ from the copy to this tree. See docs/releasing.md.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = --dry-run ]; then
	version=${2:-} here=$PWD
	copy=$(mktemp -d)
	trap 'rm -rf "$copy"' EXIT
	git clone -q --no-tags . "$copy/weir"
	cd "$copy/weir"
	commit() { git -c user.name=weir -c user.email=weir@localhost commit -qam "$1"; }
	sed -i "s/^## \[${version#v}\] - unreleased$/## [${version#v}] - $(date -u +%F)/" CHANGELOG.md
	git diff --quiet || commit "Date the changelog of $version"
	if ! scripts/release.sh "$version" >"$copy/log" 2>&1; then
		# The first run changes the requirements, and then fails because they are not committed.
		# After any other failure the tree has no changes.
		[ -n "$(git status --porcelain)" ] || { cat "$copy/log" >&2; exit 1; }
		commit "Require $version"
		scripts/release.sh "$version" >"$copy/log" 2>&1 || { cat "$copy/log" >&2; exit 1; }
	fi
	cat "$copy/log"
	sed -n 's/^  \(git tag .*\) && git push .*/\1/p' "$copy/log" |
		sed 's/^git /git -c user.name=weir -c user.email=weir@localhost /' | sh -e
	printf 'release: a dry run made the tag %s\n' $(git tag)
	rm -rf "$here/dist"
	mv dist "$here/dist"
	exit
fi
go=${GO:-go} version=${1:-} m=github.com/weir-go/weir
cli=$m/cmd/weir/internal/cli # the package with the variables Version and commit
die() { printf 'release: %s\n' "$*" >&2; exit 1; }
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[a-z0-9.]+)?$ ]] || die "name a version, such as v0.1.0"
[ -z "$(git status --porcelain)" ] || die "the tree has changes: commit them first"
grep -q "^## \[${version#v}\] - 20" CHANGELOG.md || die "CHANGELOG.md has no section for it, such as \"## [${version#v}] - $(date -u +%F)\""
tags=("$version" "store/redisstore/$version" "sink/s3sink/$version" "deadletter/sqsletters/$version" "otelweir/$version" "promweir/$version" "payload/s3payload/$version" "payload/zstdpayload/$version" "cmd/weir/$version")
for tag in "${tags[@]}"; do
	! git rev-parse -q --verify "refs/tags/$tag" >/dev/null || die "the tag $tag exists"
done

# All modules of a release are tagged at once, so their checksums must be computed from this tree.
# The order matters: the checksum of a module includes its go.sum, and the command requires the
# others.
scripts/require.sh . "$version"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for module in store/redisstore sink/s3sink deadletter/sqsletters otelweir promweir payload/s3payload payload/zstdpayload cmd/weir; do
	rm -rf "$dir/proxy" "$dir/cache"
	"$go" run ./scripts/moduleproxy -version "$version" -out "$dir/proxy"
	sed -i "/^github\.com\/weir-go\/weir/d" "$module/go.sum"
	(
		export GOPROXY="file://$dir/proxy,file://$("$go" env GOMODCACHE)/cache/download,$("$go" env GOPROXY)"
		cd "$module" && GONOSUMDB=$m GOWORK=off GOMODCACHE="$dir/cache" GOFLAGS=-modcacherw "$go" mod tidy
	)
done
if [ -n "$(git status --porcelain)" ]; then
	git status --short
	die "the modules require $version now: commit that, and run this again"
fi

rm -rf dist
mkdir dist
commit=$(git rev-parse HEAD) date=$(git log -1 --format=%cI)
stamp=$(date -u -d "$date" +%Y%m%d%H%M.%S)
# name OS ARCH prints the name of an archive without .tar.gz.
name() { echo "weir_${version#v}_$1_$2"; }
(cd cmd/weir && CGO_ENABLED=0 "$go" build -trimpath -o "$dir/weir" .)
mkdir "$dir/man"
(cd cmd/weir && SOURCE_DATE_EPOCH=$(date -d "$date" +%s) "$go" test -count=1 -run '^TestManualPages$' . -args -man "$dir/man" >/dev/null)
for os in linux darwin windows; do for arch in amd64 arm64; do
	at=$dir/$(name $os $arch) binary=weir
	[ $os != windows ] || binary=weir.exe
	mkdir -p "$at/completions"
	(cd cmd/weir && CGO_ENABLED=0 GOOS=$os GOARCH=$arch "$go" build -trimpath -buildvcs=false \
		-ldflags "-s -w -X $cli.Version=$version -X $cli.commit=$commit" -o "$at/$binary" .)
	cp LICENSE README.md CHANGELOG.md deploy/Dockerfile "$at/"
	cp -r "$dir/man" "$at/man"
	for shell in bash zsh fish powershell; do "$dir/weir" completion $shell >"$at/completions/weir.$shell"; done
	"$go" run ./scripts/sbom "$at/$binary" >"$at/weir.cdx.json"
	find "$at" -exec env TZ=UTC touch -t "$stamp" {} +
	tar --sort=name --owner=0 --group=0 --numeric-owner -C "$dir" -cf - "$(basename "$at")" | gzip -n9 >"dist/$(name $os $arch).tar.gz"
	printf 'release: dist/%s.tar.gz\n' "$(name $os $arch)"
done; done
(cd dist && sha256sum -- *.tar.gz >SHA256SUMS)

echo "release: make the tags, and push them in this order:"
for tag in "${tags[@]}"; do printf '  git tag -a %s -m "weir %s" %s && git push origin %s\n' "$tag" "$version" "$commit" "$tag"; done
