package autonode

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The manifests of the user's page, in their order, do what the text around them promises.
func TestTheManifestsOfThePageDoWhatItSays(t *testing.T) {
	page, err := os.ReadFile("../../../docs/autonode-policy.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 2 || !strings.Contains(blocks[0][1], "namespace: "+hcp) {
		t.Fatalf("the page has %d manifests, want a policy in %s and a pool", len(blocks), hcp)
	}
	w := begin(t)
	if err := w.mgmt.Apply(w.ctx, blocks[0][1]); err != nil {
		t.Fatal(err)
	}
	if err := w.guest.Apply(w.ctx, blocks[1][1]); err != nil {
		t.Fatal(err)
	}
	types, zones := in(instanceType, "m5.large", "m5.xlarge"), in(zone, "us-east-1a", "us-east-1b")
	w.merged("web", types, zones, in(instanceType, "m5.xlarge", "c5.xlarge"))
	w.folds("web", instanceType, []string{"m5.large", "m5.xlarge", "c5.xlarge"}, []string{"m5.xlarge"})
	w.rooted("{volumeSize: 100Gi, volumeType: gp3, encrypted: true}", "default")
	w.policySays("True", "Applied", "replaces") // and it tells what a change brings about (G23)
	const message = "NodePool resources cannot be modified directly. Use OpenshiftNodePool instead."
	if !strings.Contains(string(page), message) {
		t.Errorf("the page does not quote %q", message)
	}
	w.refused("a NodePool by hand", w.cadmin.Create(w.ctx, handMade("by-hand"), client.DryRunAll), message)
}
