#!/bin/sh
# Builds the plugin's module as a part of released Kubernetes versions, as a vendor would (A-36). Needs the network: Go
# fetches the modules of each release.
#
#   check-upstream.sh RELEASE...    for instance 1.34.0 1.35.4
#
# For each release, the script tidies a module that requires it, with the staging modules of that release, first
# without the plugin and then with it. The plugin must change no version. Then the plugin is built and vetted. The
# script prints the modules that come with the plugin. Environment: GO (default "go").
set -eu

go=${GO:-go}
root=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || { echo "usage: check-upstream.sh RELEASE..." >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0
plugin=github.com/joiner-autoscaler/joiner/nodescheduling

for release in "$@"; do
	mkdir -p "$work/$release"
	cd "$work/$release"
	"$go" mod init upstream.test 2>/dev/null
	"$go" mod edit -go=1.24.0 -require="k8s.io/kubernetes@v$release"
	gomod=$("$go" mod download -json "k8s.io/kubernetes@v$release" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
	for staging in $(sed -n 's|^[[:space:]]*\(k8s.io/[a-z-]*\) v0\.0\.0\( .*\)\{0,1\}$|\1|p' "$gomod" | sort -u); do
		"$go" mod edit -replace="$staging=$staging@v0.${release#1.}"
	done
	cat >main.go <<-EOF
		// Command upstream is a kube-apiserver's packages.
		package main

		import _ "k8s.io/kubernetes/cmd/kube-apiserver/app"

		func main() {}
	EOF
	"$go" mod tidy >tidy.log 2>&1 || { cat tidy.log >&2; exit 1; }
	"$go" list -m all | grep -v "^upstream.test" >before
	"$go" mod edit -require="$plugin@v0.0.0" -replace="$plugin=$root/nodescheduling"
	cat >plugin.go <<-EOF
		package main

		import _ "$plugin/plugin"
	EOF
	"$go" mod tidy >tidy.log 2>&1 || { cat tidy.log >&2; exit 1; }
	"$go" list -m all | grep -v "^upstream.test" | grep -v "^$plugin " >after
	# Every module of before must be in after with the same version. Modules that come only with the plugin are
	# printed: they are in the plugin's go.mod for older releases.
	if diff before after | grep '^<' >changed; then
		echo "with Kubernetes $release the plugin changes versions:" >&2
		diff before after >&2
		exit 1
	fi
	diff before after | sed -n "s/^> /with Kubernetes $release one more module is in the graph: /p"
	"$go" build "$plugin/..."
	"$go" vet "$plugin/api/..." "$plugin/evaluator" "$plugin/door" "$plugin/plugin"
	echo "Kubernetes $release: $(wc -l <after) modules, no version changed; plugin built and vetted"
done
