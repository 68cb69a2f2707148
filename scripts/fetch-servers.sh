#!/bin/sh
# Fetches the servers and clients of others that the integration tests run against, into .deps (or $WEIR_DEPS). Needs Node.js
# 20 or newer with npm, and a JDK 17 or newer with Maven. Does nothing when all is there already.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
deps=${WEIR_DEPS:-$here/../.deps}
mkdir -p "$deps"
deps=$(cd "$deps" && pwd)

need() {
	command -v "$1" >/dev/null 2>&1 || {
		echo "fetch-servers: $1 is not installed; $2" >&2
		exit 1
	}
}

# current NAME FILE...: whether NAME was fetched from just these files. A stamp is written last, so what was cut short is
# fetched again.
current() {
	stamp=$deps/$1/.fetched
	shift
	test -f "$stamp" && cat "$@" | cmp -s - "$stamp"
}

if ! current npm "$here/servers/package.json" "$here/servers/package-lock.json"; then
	need npm 'install Node.js 20 or newer (Debian: nodejs npm)'
	echo "fetch-servers: npm packages into $deps/npm" >&2
	rm -rf "$deps/npm"
	mkdir -p "$deps/npm"
	cp "$here/servers/package.json" "$here/servers/package-lock.json" "$deps/npm/"
	# No install scripts: the servers run in memory, their native parts are optional.
	(cd "$deps/npm" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
	cat "$here/servers/package.json" "$here/servers/package-lock.json" >"$deps/npm/.fetched"
fi

if ! current dynamodb-local "$here/servers/pom.xml" "$here/servers/LoopbackDynamoDB.java"; then
	need mvn 'install Maven (Debian: maven)'
	need javac 'install a JDK 17 or newer (Debian: openjdk-17-jdk-headless)'
	echo "fetch-servers: DynamoDB Local into $deps/dynamodb-local" >&2
	rm -rf "$deps/dynamodb-local"
	mkdir -p "$deps/dynamodb-local"
	mvn -q -B -Dstyle.color=never -f "$here/servers/pom.xml" \
		org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory="$deps/dynamodb-local" >&2
	javac -cp "$deps/dynamodb-local/*" -d "$deps/dynamodb-local" "$here/servers/LoopbackDynamoDB.java"
	cat "$here/servers/pom.xml" "$here/servers/LoopbackDynamoDB.java" >"$deps/dynamodb-local/.fetched"
fi
