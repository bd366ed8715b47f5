package crd

import (
	"bytes"
	"maps"
	"slices"
	"testing"
)

// V-01, V-02, R1, R8: each cluster gets the kinds that belong there and no others, and every manifest is
// one document.
func TestEachClusterGetsItsManifestsAsSingleDocuments(t *testing.T) {
	t.Parallel()
	for _, cluster := range []struct {
		name string
		read func() (map[string][]byte, error)
		want []string
	}{
		{"any", Manifests, []string{
			"autoscaling.x-k8s.io_capacitybuffers.yaml",
			"karpenter.k8s.aws_ec2nodeclasses.yaml",
			"karpenter.kwok.sh_kwoknodeclasses.yaml",
			"karpenter.sh_nodeclaims.yaml",
			"karpenter.sh_nodeoverlays.yaml",
			"karpenter.sh_nodepools.yaml",
			"policy_expired-budget.yaml",
			"policy_expired-budget_binding.yaml",
		}},
		{"management", Management, []string{"karpenter.hypershift.openshift.io_autonodepolicies.yaml"}},
		{"guest", Guest, []string{
			"karpenter.hypershift.openshift.io_openshiftec2nodeclasses.yaml",
			"karpenter.hypershift.openshift.io_openshiftnodepools.yaml",
		}},
		{"not OpenShift", OpenShift, []string{"config.openshift.io_schedulers.yaml"}},
		{"protected", NodeScheduling, []string{"scheduling.joiner.sh_nodeschedulinggroups.yaml"}},
	} {
		t.Run(cluster.name, func(t *testing.T) {
			t.Parallel()
			manifests, err := cluster.read()
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(maps.Keys(manifests)); !slices.Equal(got, cluster.want) {
				t.Errorf("manifests = %q, want %q", got, cluster.want)
			}
			for name, content := range manifests {
				document := bytes.TrimPrefix(content, []byte("---\n"))
				if bytes.Contains(document, []byte("\n---")) || bytes.Count(document, []byte("\napiVersion: "))+
					bytes.Count(document[:11], []byte("apiVersion:")) != 1 {
					t.Errorf("%s does not hold exactly one document", name)
				}
			}
		})
	}
}
