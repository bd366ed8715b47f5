package karpenter

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	peerv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

const templates = 5000

// D-06, P-34: for the same manifest our drift hash is Karpenter's, so a takeover drifts no node. Templates are drawn
// as JSON, as users write them, and read into both sides' types.
func TestHashIsKarpentersForGeneratedTemplates(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(34, 6))
	hashes := map[string]bool{}
	for range templates {
		manifest, err := json.Marshal(object{"metadata": object{"name": "p"},
			"spec": object{"template": template(dice)}})
		if err != nil {
			t.Fatal(err)
		}
		var own karpenterv1.NodePool
		var peers peerv1.NodePool
		if err := json.Unmarshal(manifest, &own); err != nil {
			t.Fatalf("reading %s: %v", manifest, err)
		}
		if err := json.Unmarshal(manifest, &peers); err != nil {
			t.Fatalf("reading %s as Karpenter does: %v", manifest, err)
		}
		got, want := translate.Hash(&own), peers.Hash()
		if got != want {
			t.Fatalf("hash %s, Karpenter's is %s, for\n%s", got, want, manifest)
		}
		hashes[got] = true
	}
	if len(hashes) < templates/2 { // else the templates say nothing
		t.Errorf("%d templates have %d hashes", templates, len(hashes))
	}
	if translate.HashVersion != peerv1.NodePoolHashVersion {
		t.Errorf("hash version %s, Karpenter's is %s", translate.HashVersion, peerv1.NodePoolHashVersion)
	}
}

type object = map[string]any

// template draws a NodePool's spec.template. Everything may be missing, empty or set, except the reference to a node
// class, which the API demands.
func template(dice *rand.Rand) object {
	group, kind := pick(dice, "karpenter.kwok.sh", "karpenter.k8s.aws"), pick(dice, "KWOKNodeClass", "EC2NodeClass")
	spec := object{"requirements": []object{}, "nodeClassRef": object{"group": group, "kind": kind,
		"name": word(dice)}}
	for _, list := range []string{"taints", "startupTaints"} {
		if dice.IntN(2) > 0 {
			spec[list] = taints(dice)
		}
	}
	if dice.IntN(2) > 0 {
		spec["expireAfter"] = pick(dice, "Never", "0s", "720h", "90m", "1h30m",
			fmt.Sprintf("%dh%dm%ds", dice.IntN(999), dice.IntN(200), dice.IntN(200)))
	}
	if dice.IntN(2) > 0 {
		spec["terminationGracePeriod"] = pick(dice, "0s", "5m", "48h", fmt.Sprintf("%ds", dice.IntN(1<<20)))
	}
	if dice.IntN(2) > 0 { // not a part of the hash
		spec["requirements"] = []object{{"key": word(dice), "operator": "In", "values": []string{word(dice)}}}
	}
	drawn := object{"spec": spec}
	if dice.IntN(4) > 0 {
		metadata := object{}
		for _, kind := range []string{"labels", "annotations"} {
			if dice.IntN(2) > 0 {
				metadata[kind] = words(dice)
			}
		}
		drawn["metadata"] = metadata
	}
	return drawn
}

func taints(dice *rand.Rand) []object {
	list := []object{}
	for range dice.IntN(5) {
		taint := object{"key": word(dice), "effect": pick(dice, "NoSchedule", "PreferNoSchedule", "NoExecute")}
		if dice.IntN(2) > 0 {
			taint["value"] = pick(dice, "", word(dice))
		}
		if dice.IntN(4) == 0 {
			taint["timeAdded"] = fmt.Sprintf("20%02d-%02d-%02dT%02d:00:00Z", 10+dice.IntN(30), 1+dice.IntN(12),
				1+dice.IntN(28), dice.IntN(24))
		}
		list = append(list, taint)
		if dice.IntN(8) == 0 {
			list = append(list, taint) // twice the same
		}
	}
	return list
}

func words(dice *rand.Rand) object {
	drawn := object{}
	for range dice.IntN(5) {
		drawn[word(dice)] = pick(dice, "", word(dice))
	}
	return drawn
}

func word(dice *rand.Rand) string {
	return pick(dice, "team", "example.com/role", "a", "b", "gpu", fmt.Sprintf("w%d", dice.IntN(1000)))
}

func pick(dice *rand.Rand, from ...string) string { return from[dice.IntN(len(from))] }
