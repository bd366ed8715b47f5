package certificate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// targets get a path that ends in a token, which differs for each certificate. Every replica accepts each token
// that a target may have: before targets get it, while they have it, and for five minutes after the last target lost
// it, even if a replica steps late.
func TestA14_TargetsAreCalledByATokenThatIsRenewed(t *testing.T) {
	t.Parallel()
	const base = "/node-scheduling"
	c := cluster(t)
	make := func() *Keeper {
		k, err := NewKeeper(Config{Terms: terms(), Store: SecretStore(c, "space", "own"),
			Targets: []Target{ValidatingWebhooks(c, "guard")}, Path: base})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first, late := make(), make()
	step := func(at time.Duration, all ...*Keeper) {
		t.Helper()
		for _, k := range all {
			if _, err := k.Step(t.Context(), began().Add(at)); err != nil {
				t.Fatal(err)
			}
			for _, path := range paths(t, c) {
				if token, found := strings.CutPrefix(path, base+"/"); !found || !slices.Contains(k.Tokens(), token) ||
					!k.Ready() {
					t.Fatalf("after %s the API server calls by %q; accepted are %q, ready %t", at, path, k.Tokens(),
						k.Ready())
				}
			}
		}
	}
	step(0, first, late)
	old := paths(t, c)[0]
	if len(old) < len(base)+1+43 || len(paths(t, c)) != 2 || paths(t, c)[1] != old {
		t.Fatalf("the paths are %q, want 32 bytes behind %s", paths(t, c), base)
	}
	step(time.Hour, first, late)
	if paths(t, c)[0] != old {
		t.Error("the path has changed without a renewal")
	}
	for at := 60 * day; paths(t, c)[0] == old; at += time.Minute { // the other replica steps between
		step(at, first, late)
		if at > 61*day {
			t.Fatal("the path is not renewed")
		}
	}
	was := strings.TrimPrefix(old, base+"/")
	if !slices.Contains(first.Tokens(), was) || !slices.Contains(late.Tokens(), was) {
		t.Error("the token before is refused at once")
	}
	step(61*day, first, late)
	step(61*day+announceFor-time.Second, first, late)
	if !slices.Contains(first.Tokens(), was) {
		t.Error("the token before is refused before its five minutes are over")
	}
	step(61*day+2*announceFor, first, late)
	step(61*day+2*announceFor, first, late)
	if slices.Contains(first.Tokens(), was) || slices.Contains(late.Tokens(), was) {
		t.Error("the token before is accepted for good")
	}
}

// a path that somebody else wrote is put back, in a service and in a URL, and so is one that is missing.
func TestA14_APathIsPutBack(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	k, err := NewKeeper(Config{Terms: terms(), Store: SecretStore(c, "space", "own"), Targets: targets(c), Path: "/x"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := k.Step(t.Context(), began()); err != nil || !k.Ready() {
			t.Fatalf("ready %t, %v", k.Ready(), err)
		}
		want := "/x/" + k.Tokens()[0]
		held, err := targets(c)[1].Read(t.Context())
		if err != nil || !slices.Equal(paths(t, c), []string{want, want}) ||
			!slices.Equal(held.Paths, []string{want}) {
			t.Errorf("the paths are %q and %q (%v), want %s", paths(t, c), held.Paths, err, want)
		}
		guard := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1",
			"kind": "ValidatingWebhookConfiguration"}}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "guard"}, guard); err != nil {
			t.Fatal(err)
		}
		webhooks, _, _ := unstructured.NestedSlice(guard.Object, "webhooks")
		_ = unstructured.SetNestedField(webhooks[0].(map[string]any), "/forged", "clientConfig", "service", "path")
		_ = unstructured.SetNestedSlice(guard.Object, webhooks, "webhooks")
		if err := c.Update(t.Context(), guard); err != nil {
			t.Fatal(err)
		}
	}
}

// paths are those of the webhooks of the configuration.
func paths(t *testing.T, c client.Client) []string {
	t.Helper()
	held, err := ValidatingWebhooks(c, "guard").Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return held.Paths
}
