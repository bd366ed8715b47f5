#!/bin/sh
# Builds the controlplane binary and shows its progress. A first build compiles
# about 2,800 packages, which takes five to ten minutes on two cores.
#
#   build-controlplane.sh OUTPUT
#
# Environment: GO (default "go"); PROGRESS_SECONDS between two lines where the
# output is not a terminal (default 15).
set -eu

output=${1:?usage: build-controlplane.sh OUTPUT}
case $output in /*) ;; *) output=$PWD/$output ;; esac
go=${GO:-go}
cd "$(dirname "$0")"

# The version comes from the linked module. Without these flags the server
# reports v0.0.0, and clients that check its version misbehave.
version=$("$go" list -m -f '{{.Version}}' k8s.io/kubernetes)
major=${version#v}; major=${major%%.*}
minor=${version#v*.}; minor=${minor%%.*}
ldflags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags="$ldflags -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
done
ldflags="$ldflags -X k8s.io/component-base/version.gitTreeState=clean"
export CGO_ENABLED=0

work=$(mktemp -d)
build=
cleanup() {
	[ -z "$build" ] || kill "$build" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

if [ -t 1 ]; then interval=1 line='%-70s\r'; else interval=${PROGRESS_SECONDS:-15} line='%s\n'; fi
began=$(date +%s)

# say prints a line of progress; on a terminal it replaces the one before.
say() {
	# shellcheck disable=SC2059 # The format is one of the two above.
	printf "$line" "controlplane: $1 ($(($(date +%s) - began)) s)"
}

# lines prints how many lines of the build's output match a pattern.
lines() { grep -c "$1" "$work/log" || true; }

# follow waits for the background job $build, and every few seconds prints the
# output of the command "$@". Short waits notice the end of the job soon.
follow() {
	waited=0
	while kill -0 "$build" 2>/dev/null; do
		sleep 1
		waited=$((waited + 1))
		if [ $((waited % interval)) -eq 0 ]; then say "$("$@")"; fi
	done
	status=0
	wait "$build" || status=$?
	build=
	return "$status"
}

fail() {
	printf '\n' >&2
	# Names of packages and downloads are progress. Everything else is the error.
	grep -v -x -F -f "$work/packages" "$work/log" | grep -v '^go: downloading ' >&2 || true
	echo "controlplane: $1 failed after $(($(date +%s) - began)) s" >&2
	exit 1
}

# Fetches missing modules and lists the packages that are not in the build
# cache. The command itself is always built, so it counts even if it is cached.
: >"$work/packages"
fetching() { echo "modules fetched: $(lines '^go: downloading ')"; }
say "looking for what has to be built"
"$go" list -trimpath -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' ./cmd/controlplane \
	>"$work/packages" 2>"$work/log" &
build=$!
follow fetching || fail "listing the packages"
total=$(wc -l <"$work/packages" | tr -d ' ')

compiling() {
	count=$(grep -c -x -F -f "$work/packages" "$work/log" || true)
	if [ $((count + 1)) -ge "$total" ]; then
		echo "linking"
	else
		echo "compiling package $count of $total"
	fi
}
say "packages to compile: $total"
"$go" build -v -trimpath -ldflags "$ldflags" -o "$output.new" ./cmd/controlplane 2>"$work/log" &
build=$!
follow compiling || fail "the build"

# A cluster may be running the old file: replace it, never write into it.
mv -f "$output.new" "$output"
say "built $output, Kubernetes $version"
[ ! -t 1 ] || printf '\n'
