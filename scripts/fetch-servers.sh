#!/bin/sh
# Fetches the servers and clients that the integration tests run against into .deps (or $WEIR_DEPS):
#
#	scripts/fetch-servers.sh            all of them
#	scripts/fetch-servers.sh PART...    these parts and nothing else
#
# The parts, in groups that are fetched in parallel:
#
#	npm axe lifion lambda-node       Node.js 20 or newer with npm and its headers, CMake, a C++ compiler
#	python lambda-python multilang   Python 3.9 or newer with venv; multilang also npm
#	dynamodb-local java java1 elasticmq
#	                                 a JDK 17 or newer with Maven
#	debian releases prometheus nginx apt-get; releases holds MySQL and Valkey from other Debian releases
#	versitygw oauth2-proxy           Go, which builds them from source
#
# Debian packages are unpacked, not installed. After the script has fetched a part, it copies the
# files that describe the part into the part's .fetched file. It fetches the part again only when
# these files have changed.
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

# current NAME FILE... succeeds if part NAME was fetched from exactly these files. The .fetched file
# is written last, so a part whose fetch was interrupted is fetched again.
current() {
	stamp=$deps/$1/.fetched
	shift
	test -f "$stamp" && cat "$@" | cmp -s - "$stamp"
}

# built FOLDER WHAT builds a Go program from source, at the version that servers/FOLDER.txt names.
# WHAT describes the program in messages. The go command verifies the checksums of its downloads.
built() {
	current "$1" "$here/servers/$1.txt" && return
	need go 'install the Go that go.mod names'
	echo "fetch-servers: $2 into $deps/$1, built from its source" >&2
	rm -rf "${deps:?}/$1"
	mkdir -p "$deps/$1"
	(cd "$deps/$1" && GOBIN=$deps/$1 GOWORK=off GOFLAGS=-mod=mod CGO_ENABLED=0 go install "$(grep -v '^#' "$here/servers/$1.txt")" >&2)
	cat "$here/servers/$1.txt" >"$deps/$1/.fetched"
}
# update_apt brings apt's lists up to date, one process at a time. Only root may do that.
update_apt() {
	test "$(id -u)" -eq 0 || return 1
	flock "$deps/.apt-lock" apt-get -q update >&2
}

fetch_npm() {
	current npm "$here/servers/package.json" "$here/servers/package-lock.json" && return
	need npm 'install Node.js 20 or newer (Debian: nodejs npm)'
	echo "fetch-servers: npm packages into $deps/npm" >&2
	rm -rf "$deps/npm"
	mkdir -p "$deps/npm"
	cp "$here/servers/package.json" "$here/servers/package-lock.json" "$deps/npm/"
	# Install scripts would only compile native parts, which servers that run in memory do not need.
	(cd "$deps/npm" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
	cat "$here/servers/package.json" "$here/servers/package-lock.json" >"$deps/npm/.fetched"
}

fetch_axe() {
	current axe "$here/servers/axe/package.json" "$here/servers/axe/package-lock.json" && return
	need npm 'install Node.js 20 or newer (Debian: nodejs npm)'
	echo "fetch-servers: a checker of pages for faults of accessibility into $deps/axe" >&2
	rm -rf "$deps/axe"
	mkdir -p "$deps/axe"
	cp "$here/servers/axe/package.json" "$here/servers/axe/package-lock.json" "$deps/axe/"
	(cd "$deps/axe" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
	cat "$here/servers/axe/package.json" "$here/servers/axe/package-lock.json" >"$deps/axe/.fetched"
}

fetch_lifion() {
	current lifion "$here/servers/lifion/package.json" "$here/servers/lifion/package-lock.json" && return
	need npm 'install Node.js 20 or newer (Debian: nodejs npm)'
	echo "fetch-servers: lifion-kinesis, another client, into $deps/lifion" >&2
	rm -rf "$deps/lifion"
	mkdir -p "$deps/lifion"
	cp "$here/servers/lifion/package.json" "$here/servers/lifion/package-lock.json" "$deps/lifion/"
	(cd "$deps/lifion" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
	cat "$here/servers/lifion/package.json" "$here/servers/lifion/package-lock.json" >"$deps/lifion/.fetched"
}

fetch_python() {
	current python "$here/servers/requirements.txt" && return
	need python3 'install Python 3.9 or newer with venv (Debian: python3-venv)'
	echo "fetch-servers: Python packages into $deps/python" >&2
	rm -rf "$deps/python"
	python3 -m venv "$deps/python" >&2
	"$deps/python/bin/pip" -q --disable-pip-version-check install --no-deps --only-binary :all: -r "$here/servers/requirements.txt" >&2
	cat "$here/servers/requirements.txt" >"$deps/python/.fetched"
}

# The libraries of programs of the MultiLangDaemon: the source distributions of amazon_kclpy, which
# have the sample programs, and aws-kcl.
fetch_multilang() {
	list=$here/servers/multilang.txt
	current multilang "$list" && return
	need python3 'install Python 3.9 or newer with venv (Debian: python3-venv)'
	need npm 'install Node.js 20 or newer (Debian: nodejs npm)'
	echo "fetch-servers: amazon_kclpy and aws-kcl into $deps/multilang" >&2
	rm -rf "$deps/multilang"
	mkdir -p "$deps/multilang"
	python3 -m venv "$deps/multilang/python" >&2
	grep -v '^#' "$list" | while read -r kind name version; do
		case $kind in
		pip)
			"$deps/multilang/python/bin/pip" -q --disable-pip-version-check download --no-deps \
				--no-binary :all: -d "$deps/multilang" "$name==$version" >&2
			(cd "$deps/multilang" && tar xzf "$name-$version.tar.gz")
			;;
		npm) (cd "$deps/multilang" && npm install --ignore-scripts --no-audit --no-fund --loglevel=error "$name@$version" >&2) ;;
		esac
	done
	cat "$list" >"$deps/multilang/.fetched"
}

functions=$here/servers/lambda
fetch_lambda_python() {
	current lambda-python "$functions/requirements.txt" && return
	need python3 'install Python 3.9 or newer with venv (Debian: python3-venv)'
	echo "fetch-servers: Lambda's runtime client for Python into $deps/lambda-python" >&2
	rm -rf "$deps/lambda-python"
	python3 -m venv "$deps/lambda-python" >&2
	"$deps/lambda-python/bin/pip" -q --disable-pip-version-check install --no-deps --only-binary :all: -r "$functions/requirements.txt" >&2
	cat "$functions/requirements.txt" >"$deps/lambda-python/.fetched"
}

# autotools FOLDER unpacks Debian's packages of the tools that make configure scripts into FOLDER.
# It also changes the paths inside the tools, so that they find each other in FOLDER.
autotools() {
	mkdir -p "$1/debs"
	(cd "$1/debs" && apt-get -q download autoconf automake autotools-dev libtool m4 libsigsegv2 >&2) || return 1
	for deb in "$1"/debs/*.deb; do dpkg -x "$deb" "$1"; done
	for tool in automake aclocal; do ln -s "$(basename "$1/usr/bin/$tool"-*)" "$1/usr/bin/$tool"; done
	grep -rlIE '/usr/(share|bin)/(auto|aclocal|libtool|m4)' "$1/usr/bin" "$1/usr/share" | xargs sed -i -E "s#/usr/((share|bin)/(auto|aclocal|libtool|m4))#$1/usr/\\1#g"
}

fetch_lambda_node() {
	current lambda-node "$functions/package.json" "$functions/package-lock.json" && return
	for tool in node npm; do need $tool 'install Node.js 20 or newer (Debian: nodejs npm)'; done
	for tool in cmake g++ make perl; do need $tool "Lambda's runtime client for Node.js is compiled (Debian: cmake g++ make perl)"; done
	prefix=$(node -p 'path.resolve(fs.realpathSync(process.execPath), "../..")')
	test -f "$prefix/include/node/node_api.h" || {
		echo "fetch-servers: $prefix/include/node lacks the headers of Node.js, which Lambda's runtime client is compiled with (Debian: libnode-dev)" >&2
		exit 1
	}
	echo "fetch-servers: Lambda's runtime client for Node.js into $deps/lambda-node, compiled in a minute or two" >&2
	rm -rf "$deps/lambda-node"
	mkdir -p "$deps/lambda-node"
	cp "$functions/package.json" "$functions/package-lock.json" "$deps/lambda-node/"
	(
		cd "$deps/lambda-node"
		npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
		if ! command -v autoreconf >/dev/null || ! command -v libtoolize >/dev/null; then
			autotools "$PWD/autotools" || { update_apt && autotools "$PWD/autotools"; } || {
				echo "fetch-servers: apt does not give autoconf, automake, libtool and m4, which Lambda's runtime client is compiled with" >&2
				exit 1
			}
			export PATH="$PWD/autotools/usr/bin:$PATH" LD_LIBRARY_PATH="$(echo "$PWD"/autotools/usr/lib/*-linux-gnu)"
		fi
		# Run the install scripts of this package only. They compile the package's own curl. The
		# headers of Node.js are on this machine already, so nothing downloads them.
		MAKEFLAGS="-j$(nproc)" npm_config_nodedir=$prefix npm rebuild --foreground-scripts --loglevel=error aws-lambda-ric >compiling.log 2>&1 || {
			tail -n 40 compiling.log >&2
			echo "fetch-servers: Lambda's runtime client for Node.js does not compile; $PWD/compiling.log contains the compiler's output" >&2
			exit 1
		}
		rm -rf autotools
	)
	cat "$functions/package.json" "$functions/package-lock.json" >"$deps/lambda-node/.fetched"
}

fetch_dynamodb_local() {
	current dynamodb-local "$here/servers/pom.xml" "$here/servers/LoopbackDynamoDB.java" && return
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
}

fetch_elasticmq() {
	current elasticmq "$here/servers/elasticmq/pom.xml" && return
	need mvn 'install Maven (Debian: maven)'
	echo "fetch-servers: ElasticMQ, an SQS server, into $deps/elasticmq" >&2
	rm -rf "$deps/elasticmq"
	mkdir -p "$deps/elasticmq"
	mvn -q -B -Dstyle.color=never -f "$here/servers/elasticmq/pom.xml" \
		org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory="$deps/elasticmq" >&2
	cat "$here/servers/elasticmq/pom.xml" >"$deps/elasticmq/.fetched"
}

clients=$here/../internal/proof/integration/java
fetch_java() {
	current java "$here/servers/java/pom.xml" "$clients/KclReader.java" "$clients/KplLoad.java" "$clients/KplWriter.java" && return
	need mvn 'install Maven (Debian: maven)'
	need javac 'install a JDK 17 or newer (Debian: openjdk-17-jdk-headless)'
	echo "fetch-servers: the KCL and the KPL into $deps/java" >&2
	rm -rf "$deps/java"
	mkdir -p "$deps/java"
	mvn -q -B -Dstyle.color=never -f "$here/servers/java/pom.xml" \
		org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory="$deps/java" >&2
	javac -cp "$deps/java/*" -d "$deps/java" "$clients/KclReader.java" "$clients/KplLoad.java" "$clients/KplWriter.java"
	cat "$here/servers/java/pom.xml" "$clients/KclReader.java" "$clients/KplLoad.java" "$clients/KplWriter.java" >"$deps/java/.fetched"
}

fetch_java1() {
	current java1 "$here/servers/java1/pom.xml" "$clients/KclOneReader.java" && return
	need mvn 'install Maven (Debian: maven)'
	need javac 'install a JDK 17 or newer (Debian: openjdk-17-jdk-headless)'
	echo "fetch-servers: version 1 of the KCL into $deps/java1" >&2
	rm -rf "$deps/java1"
	mkdir -p "$deps/java1"
	mvn -q -B -Dstyle.color=never -f "$here/servers/java1/pom.xml" \
		org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory="$deps/java1" >&2
	javac -cp "$deps/java1/*" -d "$deps/java1" "$clients/KclOneReader.java"
	cat "$here/servers/java1/pom.xml" "$clients/KclOneReader.java" >"$deps/java1/.fetched"
}

# wanted prints the lines of debian.txt that are not comments. If a line names several packages, only
# the first one that apt knows is fetched.
wanted() { grep -v '^#' "$here/servers/debian.txt"; }

# known PACKAGE succeeds if apt could download PACKAGE.
known() { apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [0-9]'; }

# chosen prints one package for each line of wanted. It replaces a package that only depends on the
# real one: postgresql becomes postgresql-15, for example.
chosen() {
	wanted | while read -r line; do
		for name in $line; do
			known "$name" || continue
			real=$(apt-cache depends --no-recommends --no-suggests "$name" | sed -n "s/^ *Depends: \\($name-[0-9][0-9]*\\)\$/\\1/p" | head -n 1)
			echo "${real:-$name}"
			break
		done
	done
}

# debs prints the packages to download: the servers, and the libraries that they need and this
# machine lacks. It omits other dependencies (configuration, accounts, Perl, a compiler for
# queries), because only an installed server needs them.
debs() {
	servers=$(chosen)
	test "$(echo "$servers" | wc -l)" -eq "$(wanted | wc -l)" || return 1
	# The simulation prints "Inst NAME (VERSION ...)" for a package that this machine lacks, and
	# "Inst NAME [OLD] (VERSION ...)" for a package that would be upgraded.
	# shellcheck disable=SC2086
	needed=$(apt-get -s --no-install-recommends install $servers) || return 1
	{
		echo "$servers"
		echo "$needed" | awk '$1 == "Inst" && $3 ~ /^\(/ && ($2 ~ /^lib/ || $2 ~ /-tools$/) && $2 !~ /^libllvm|-perl$/ { print $2 }'
	} | sort -u
}

fetch_debian() {
	current debian "$here/servers/debian.txt" && return
	need apt-get 'the databases come from the packages of Debian or one of its kind'
	echo "fetch-servers: Postgres, MariaDB and Redis into $deps/debian" >&2
	# Fetch into a temporary folder, and rename it at the end, when it is complete.
	new=$deps/debian.$$
	rm -rf "$new"
	mkdir -p "$new/debs"
	fetch() {
		list=$(debs) && test -n "$list" || return 1
		# shellcheck disable=SC2086
		(cd "$new/debs" && rm -f ./*.deb && apt-get -q download $list 2>&1)
	}
	# The first attempt fails if apt's lists of packages are missing or older than the archive.
	# update_apt can only help if this script runs as root.
	said=$(fetch) || {
		update_apt
		said=$(fetch) || {
			echo "fetch-servers: apt does not give the databases: $said" >&2
			echo "fetch-servers: run apt-get update as root, and see scripts/servers/debian.txt for their names" >&2
			exit 1
		}
	}
	for deb in "$new"/debs/*.deb; do dpkg -x "$deb" "$new"; done
	rm -rf "$new/debs"
	cat "$here/servers/debian.txt" >"$new/.fetched"
	rm -rf "$deps/debian"
	mv "$new" "$deps/debian"
}

# single FOLDER fetches the one package that servers/FOLDER.txt names. The package needs only
# libraries that every Debian has.
single() {
	current "$1" "$here/servers/$1.txt" && return
	need apt-get "$1 comes from the packages of Debian or one of its kind"
	echo "fetch-servers: $1 into $deps/$1" >&2
	new=$deps/$1.$$
	rm -rf "$new"
	mkdir -p "$new/debs"
	package=$(grep -v '^#' "$here/servers/$1.txt")
	get() { (cd "$new/debs" && apt-get -q download "$package" 2>&1); }
	said=$(get) || {
		update_apt
		said=$(get) || {
			echo "fetch-servers: apt does not give $package: $said" >&2
			exit 1
		}
	}
	for deb in "$new"/debs/*.deb; do dpkg -x "$deb" "$new"; done
	rm -rf "$new/debs"
	cat "$here/servers/$1.txt" >"$new/.fetched"
	rm -rf "${deps:?}/$1"
	mv "$new" "$deps/$1"
}

# apt_of FOLDER COMMAND... runs apt-get or apt-cache with the sources and lists in FOLDER instead of
# the machine's. apt then treats no package as installed.
apt_of() {
	of=$1
	shift
	"$@" -o Dir::Etc::SourceList="$of/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State="$of/state" \
		-o Dir::State::status="$of/status" -o Dir::Cache="$of/cache" -o Acquire::Languages=none -o Acquire::http::Timeout=30 -o Acquire::Retries=2 \
		-o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o APT::Sandbox::User="$(id -un)"
}

# mirror prints the URL of the archive from which this machine gets its own Debian packages.
mirror() {
	apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' | sed -n 's/^Debian \(.*debian\/\)$/\1/p' | head -n 1
}

# release FOLDER RELEASE PACKAGE fetches the server PACKAGE of another Debian release into
# FOLDER.$$, with all libraries that the server needs. If it fails, it prints the reason.
release() {
	from=$(mirror)
	# If apt has no lists of packages, mirror prints nothing.
	test -n "$from" || { update_apt && from=$(mirror); }
	key=$(ls /usr/share/keyrings/debian-archive-keyring.* 2>/dev/null | head -n 1)
	test -n "$from" && test -n "$key" || {
		echo "this machine's packages are not Debian's"
		return 1
	}
	new=$deps/$1.$$
	rm -rf "$new"
	mkdir -p "$new/apt/state/lists/partial" "$new/apt/cache/archives/partial" "$new/debs"
	echo "deb [signed-by=$key] $from $2 main" >"$new/apt/sources.list"
	: >"$new/apt/status"
	list=
	apt_of "$new/apt" apt-get -q update 2>&1 && list=$(apt_of "$new/apt" apt-get -s --no-install-recommends install "$3" 2>&1) || {
		echo "$list"
		return 1
	}
	list=$(echo "$list" | awk -v server="$3" '$1 == "Inst" && ($2 == server || $2 ~ /^lib|-tools$/ && $2 !~ /^libperl/) { print $2 }')
	# shellcheck disable=SC2086
	(cd "$new/debs" && apt_of "$new/apt" apt-get -q download $list 2>&1) || return 1
	for deb in "$new"/debs/*.deb; do dpkg -x "$deb" "$new" || return 1; done
	rm -rf "$new/debs" "$new/apt" "$new/usr/share/doc" "$new/usr/share/man"
}

# fetch_releases fetches the servers of releases.txt. If Debian no longer has one of them, the
# script continues. The tests of that server are then skipped, and print the reason.
fetch_releases() {
	grep -v '^#' "$here/servers/releases.txt" >"$deps/releases.$$"
	while read -r folder suite package; do
		echo "$folder $suite $package" >"$deps/line.$$"
		if ! current "$folder" "$deps/line.$$"; then
			echo "fetch-servers: $package of Debian $suite into $deps/$folder" >&2
			if said=$(release "$folder" "$suite" "$package"); then
				mv "$deps/line.$$" "$deps/$folder.$$/.fetched"
				rm -rf "${deps:?}/$folder"
				mv "$deps/$folder.$$" "$deps/$folder"
			else
				echo "fetch-servers: $package is not available, so its tests are skipped: $said" >&2
				rm -rf "$deps/$folder.$$" "${deps:?}/$folder"
				mkdir -p "$deps/$folder"
				echo "$said" >"$deps/$folder/.missing"
			fi
		fi
	done <"$deps/releases.$$"
	rm -f "$deps/releases.$$" "$deps/line.$$"
}

# versions runs each database program to print its version. This also shows whether the program
# starts on this machine.
versions() {
	libraries=$(find "$deps/debian" -type d -path '*lib/*-linux-gnu*' -prune | tr '\n' ':')
	for server in "$deps"/debian/usr/lib/postgresql/*/bin/postgres "$deps"/debian/usr/sbin/mariadbd "$deps"/debian/usr/bin/redis-server; do
		test -x "$server" || continue
		LD_LIBRARY_PATH=$libraries "$server" --version
	done
	for server in "$deps"/valkey/usr/bin/valkey-server "$deps"/mysql/usr/sbin/mysqld; do
		test -x "$server" || continue
		of=${server%/usr/*}
		"$(echo "$of"/usr/lib*/ld-linux-*.so.* "$of"/usr/lib/*-linux-gnu/ld-linux-*.so.* | tr ' ' '\n' | grep -v '\*' | head -n 1)" \
			--library-path "$(echo "$of"/usr/lib/*-linux-gnu "$of"/lib/*-linux-gnu | tr ' ' ':')" "$server" --version
	done
}

# group PART... fetches these parts one after the other. It skips parts that the caller of the
# script did not ask for.
group() {
	for part in "$@"; do
		case " $wanted_parts " in *" $part "*) ;; *) continue ;; esac
		began=$(date +%s)
		case $part in
		prometheus | nginx) single "$part" ;;
		versitygw) built versitygw 'an S3 server' ;;
		oauth2-proxy) built oauth2-proxy 'a sign-on proxy' ;;
		*) "fetch_$(echo "$part" | tr - _)" ;;
		esac
		took=$(($(date +%s) - began))
		test "$took" -lt 2 || echo "fetch-servers: $part took $took s" >&2
	done
}

all='npm axe lifion lambda-node python lambda-python multilang dynamodb-local java java1 elasticmq debian releases prometheus nginx versitygw oauth2-proxy'
wanted_parts=${*:-$all}
for part in $wanted_parts; do
	case " $all " in *" $part "*) ;; *)
		echo "fetch-servers: there is no part $part; the parts are: $all" >&2
		exit 2
		;;
	esac
done

pids=
group npm axe lifion lambda-node &
pids="$pids $!"
group python lambda-python multilang &
pids="$pids $!"
group dynamodb-local java java1 elasticmq &
pids="$pids $!"
group debian releases prometheus nginx &
pids="$pids $!"
group versitygw oauth2-proxy &
pids="$pids $!"
trap 'kill $pids 2>/dev/null || :; rm -rf "$deps"/*.$$' EXIT
failed=
for pid in $pids; do wait "$pid" || failed=yes; done
test -z "$failed" || {
	echo "fetch-servers: a part could not be fetched, see above" >&2
	exit 1
}
pids=
versions
