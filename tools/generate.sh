#!/bin/sh
# Generates the deepcopy functions, the CRDs, defaults and manifests that are made from them, the dashboard, the
# diagrams and the console's page. Needs only Go; the generators' versions are in tools/go.mod. Running it on an
# unchanged tree changes no file.
set -eu
cd "$(dirname "$0")/.."

types="paths=./api/..."
go tool -modfile=tools/go.mod controller-gen object "$types"
# The public module has the types of AutoNodePolicy and their CRD.
(
	cd autonodepolicy
	go tool -modfile=../tools/go.mod controller-gen object "paths=./api/..."
	go tool -modfile=../tools/go.mod controller-gen crd "paths=./api/..." output:crd:dir=./api/v1beta1
)
# The plugin's module: its configuration, the CRD of OpenShift's Scheduler for clusters that are not OpenShift, and the
# CRD of NodeSchedulingGroup. They are built in the module of its tests: the module itself requires older versions.
(
	cd nodescheduling/test
	go tool -modfile=../../tools/go.mod controller-gen object "paths=../api/..."
	go tool -modfile=../../tools/go.mod controller-gen crd "paths=../api/config/..." output:crd:dir=../../api/crd/openshift
	go tool -modfile=../../tools/go.mod controller-gen crd "paths=../api/scheduling/..." output:crd:dir=../../api/crd/nodescheduling
)
for package in karpenter/v1 karpenter/v1alpha1 karpenterkwok/v1alpha1 karpenteraws/v1 autoscaling/v1beta1; do
	go tool -modfile=tools/go.mod controller-gen crd "paths=./api/$package" output:crd:dir=./api/crd
done
# The same CRDs with v1beta1 beside v1 (V-20). They name a webhook without its address, so the API server refuses them
# as they are: without conversion it would take one version for the other. crd.Converting adds the address.
for group in karpenter karpenteraws; do
	go tool -modfile=tools/go.mod controller-gen crd "paths={./api/$group/v1,./api/$group/v1beta1}" output:crd:dir=./api/crd/conversion
done
for manifest in api/crd/conversion/*.yaml; do
	sed 's/^spec:$/spec:\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1]}}/' "$manifest" >"$manifest.new"
	mv "$manifest.new" "$manifest"
done
# Kinds of a hosted cluster, without the fields that its users must not see (R1, R8).
go tool -modfile=tools/go.mod controller-gen crd "paths=./api/hypershift/..." output:crd:dir=./api/crd/guest

# The proposal to openshift/api, with its feature gate on and off (A-38).
proposed=upstream/openshift-api
go tool -modfile=tools/go.mod controller-gen crd "paths=./$proposed/config/v1" output:crd:dir=./$proposed/crd
go run -C tools ./crdgate OpenShiftNodeSchedulingPolicy "$PWD/$proposed/config/v1" "$PWD/$proposed/crd/config.openshift.io_schedulers.yaml" \
	"$PWD/$proposed/crd/schedulers-enabled.yaml" "$PWD/$proposed/crd/schedulers-disabled.yaml"
rm "$proposed/crd/config.openshift.io_schedulers.yaml"

# CRD files are named <group>_<plural>.yaml. A group contains a dot; the names of the handwritten policies do not.
set -- "$PWD"/api/crd/*.*_*.yaml "$PWD"/api/crd/*/*.yaml "$PWD"/autonodepolicy/api/v1beta1/*.yaml
go run -C tools ./crdschema "$@"
cp autonodepolicy/api/v1beta1/*.yaml api/crd/management/

# The values that an API server fills into objects that the operator writes (A-01).
go run -C tools ./crddefaults "$PWD/api/crd/karpenter.k8s.aws_ec2nodeclasses.yaml" v1 v1 "$PWD/api/karpenteraws/v1/zz_generated.defaults.go"
go run -C tools ./crddefaults "$PWD/api/crd/karpenter.sh_nodepools.yaml" v1 v1 "$PWD/api/karpenter/v1/zz_generated.defaults.go"

# The dashboard for Grafana (U-10).
go run -C tools ./dashboard "$PWD/charts/joiner/files/dashboard.json"

# The diagrams of the pages (U-12).
go run -C tools ./pictures "$PWD/docs/pictures"

# The page of the console (U-08).
go run -C tools ./console "$PWD/internal/console/src" "$PWD/internal/console/assets"

# Helm reads only files inside a chart, so copy them there.
cp api/crd/*.*_*.yaml charts/joiner/crds/
cp api/crd/*.*_*.yaml api/crd/nodescheduling/*.yaml charts/joiner-crds/files/
cp api/crd/policy_*.yaml deploy/rbac.yaml deploy/v1beta1.yaml charts/joiner/files/
cp api/crd/management/*.yaml charts/joiner-operator/files/
cp api/crd/guest/*.yaml charts/joiner-operator-guest/files/
cp api/crd/nodescheduling/*.yaml charts/joiner-webhook/crds/
