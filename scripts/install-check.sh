#!/usr/bin/env bash
# Installs this tree in the ways that users install a release:
#
#   - the command, with go install, with go run and as a tool of another module
#   - the library
#   - each of these modules by itself: the Redis store, s3sink, sqsletters, otelweir, and the codecs of payloads
#
# The script builds a module proxy of files from this tree, and starts with an empty module cache.
# Modules of other projects come from this machine's module cache, or else from the usual GOPROXY.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
version=v0.999.0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
say() { printf '%s\n' "install-check: $*"; }
# quiet ARGUMENT... runs the go command. It prints the go command's error output only if it fails.
quiet() { "$go" "$@" 2>"$dir/log" || { cat "$dir/log" >&2; return 1; }; }

mkdir "$dir/tree"
git ls-files -z | xargs -0 tar -cf - | tar -xf - -C "$dir/tree"
scripts/require.sh "$dir/tree" "$version"
git -C "$dir/tree" init -q && git -C "$dir/tree" add -A
"$go" run ./scripts/moduleproxy -tree "$dir/tree" -version "$version" -out "$dir/proxy"

others="file://$("$go" env GOMODCACHE)/cache/download"
export GOPROXY="file://$dir/proxy,$others,$("$go" env GOPROXY)"
# These versions were never published, so the checksum database does not have them.
export GONOSUMDB=github.com/weir-go/weir GOWORK=off GOMODCACHE="$dir/cache" GOFLAGS="-modcacherw -trimpath" GOBIN="$dir/bin"
unset GOPRIVATE GONOPROXY
m=github.com/weir-go/weir

quiet install "$m/cmd/weir@$version"
"$dir/bin/weir" --version | grep -q "$version" || { say "weir --version does not say $version"; exit 1; }
say "go install $m/cmd/weir@vX: $("$dir/bin/weir" --version | head -1)"

# fresh NAME creates an empty module in a new folder, and changes to this folder.
fresh() { mkdir "$dir/$1" && cd "$dir/$1" && "$go" mod init "example.com/$1" 2>/dev/null; }

(fresh run && quiet run "$m/cmd/weir@$version" --version | grep -q "$version")
say "go run $m/cmd/weir@vX"

(
	fresh tool
	quiet get -tool "$m/cmd/weir@$version"
	quiet tool weir --version | grep -q "$version"
)
say "go get -tool $m/cmd/weir@vX"

(
	fresh redis
	cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/redisstore"
)

func main() {
	store, err := redisstore.New(redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true}), redisstore.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(store.Abilities().Has(lease.WatchHeartbeats))
}
END
	quiet get "$m/store/redisstore@$version"
	quiet mod tidy
	[ "$(quiet run .)" = true ]
	grep -q "$m $version" go.mod
)
say "go get $m/store/redisstore@vX, alone, and a program with it"

(
	fresh s3
	cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/weir-go/weir/sink/s3sink"
	"github.com/weir-go/weir/sink/s3sink/s3letters"
)

func main() {
	_, err := s3sink.New(s3.New(s3.Options{}), "bucket", s3sink.Options{})
	_, also := s3letters.New(s3.New(s3.Options{}), "bucket", "dead")
	fmt.Println(err, also)
}
END
	quiet get "$m/sink/s3sink@$version"
	quiet mod tidy
	[ "$(quiet run .)" = "<nil> <nil>" ]
)
say "go get $m/sink/s3sink@vX, alone, and a program with it"

(
	fresh sqs
	cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/weir-go/weir/deadletter/sqsletters"
)

func main() {
	_, err := sqsletters.New(sqs.New(sqs.Options{}), "https://sqs.eu-west-1.amazonaws.com/111122223333/dead")
	fmt.Println(err)
}
END
	quiet get "$m/deadletter/sqsletters@$version"
	quiet mod tidy
	[ "$(quiet run .)" = "<nil>" ]
)
say "go get $m/deadletter/sqsletters@vX, alone, and a program with it"

(
	fresh otel
	cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/otelweir"
)

func main() {
	_, err := otelweir.New(&weir.Options{Streams: []string{"orders"}, App: "billing"}, otelweir.Options{})
	fmt.Println(err)
}
END
	quiet get "$m/otelweir@$version"
	quiet mod tidy
	[ "$(quiet run .)" = "<nil>" ]
)
say "go get $m/otelweir@vX, alone, and a program with it"

(
	fresh payloads
	cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/weir-go/weir/payload"
	"github.com/weir-go/weir/payload/s3payload"
	"github.com/weir-go/weir/payload/zstdpayload"
)

func main() {
	small, err := zstdpayload.New(zstdpayload.Options{})
	large, also := s3payload.New(s3.New(s3.Options{}), "bucket", s3payload.Options{})
	fmt.Println(payload.Chain(small, large) != nil, err, also)
}
END
	quiet get "$m/payload/zstdpayload@$version" "$m/payload/s3payload@$version"
	quiet mod tidy
	[ "$(quiet run .)" = "true <nil> <nil>" ]
)
say "go get $m/payload/zstdpayload@vX and $m/payload/s3payload@vX, and a program with both"

(
	fresh library
	cp "$dir/tree/cmd/weir/internal/example/main.go" .
	quiet get "$m@$version"
	quiet mod tidy
	quiet build -o /dev/null .
	# Print the modules that the library requires, except the AWS SDK. There must be none.
	"$go" mod graph | awk -v of="$m@$version" '$1 == of { print $2 }' | grep -v -e '^github.com/aws/' -e '^go@' -e '^toolchain@' && { say "the library requires more than the AWS SDK"; exit 1; }
	true
)
say "go get $m@vX, and the program of README.md with it"
