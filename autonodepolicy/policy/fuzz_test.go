package policy_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
)

// list reads entries from text: a line for each, of key, operator and values, separated by spaces.
func list(text string) []fold.Requirement {
	var entries []fold.Requirement
	for line := range strings.Lines(text) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		entry := fold.Requirement{Key: words[0]}
		if len(words) > 1 {
			entry.Operator = fold.Operator(words[1])
			entry.Values = words[2:]
		}
		if len(words) > 3 {
			entry.MinValues = new(len(words) - 3)
		}
		entries = append(entries, entry)
	}
	return entries
}

// FuzzMergeRequirements: for any policy and pool, nothing panics, and a refusal says why. A written list has the
// policy's entries first, is not too long, and is never wider than the policy.
func FuzzMergeRequirements(f *testing.F) {
	for _, seed := range [][3]string{
		{"", "", ""}, {"a In x y", "a NotIn x", "a x"}, {"a In x\na Lt 3", "", ""}, {" Gte -1", "", ""},
		{"a In x", "a In y z", "a y"},
		{"kubernetes.io/arch Exists", "kubernetes.io/arch Exists x", "beta.kubernetes.io/arch amd64"},
		{"", "a Gt b\n In", ""},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, provided, own, labels string) {
		p := &policy.Policy{Requirements: list(provided)}
		pool := policy.Pool{Name: "p", Requirements: list(own), Labels: map[string]string{}}
		for line := range strings.Lines(labels) {
			key, value, _ := strings.Cut(line, " ")
			pool.Labels[key] = value
		}
		merged := policy.MergeRequirements(p, pool, nil)
		if said := merged.Compatible(); said.Status == "" || said.Reason == "" {
			t.Fatalf("nothing is said: %+v", said)
		}
		for _, problem := range merged.Problems {
			if problem.Reason == "" || problem.Field == "" || problem.Message == "" {
				t.Fatalf("a problem without a word: %+v", problem)
			}
		}
		if (merged.Requirements == nil) != (len(merged.Problems) > 0) {
			t.Fatalf("%d problems, and the list is %v", len(merged.Problems), merged.Requirements)
		}
		if merged.Requirements == nil {
			return
		}
		if len(policy.Check(*p)) > 0 || len(merged.Requirements) > policy.MaxRequirements {
			t.Fatalf("written: %d entries, problems of the policy: %v", len(merged.Requirements), policy.Check(*p))
		}
		for i, entry := range p.Requirements {
			if written := merged.Requirements[i]; written.Key != entry.Key || written.Operator != entry.Operator ||
				!slices.Equal(written.Values, entry.Values) {
				t.Fatalf("entry %d is %+v, the policy has %+v", i, written, entry)
			}
		}
		if allowed, _, _ := fold.Of(p.Requirements); !merged.Folded.And(allowed).Equal(merged.Folded) {
			t.Fatalf("%s is wider than the policy's %s", merged.Folded, allowed)
		}
		policy.Conforms(p.Requirements, policy.Claim{Requirements: pool.Requirements, Labels: pool.Labels})
	})
}

// endless matches texts that Kubernetes takes seconds to minutes to parse, before any function of the module sees
// them: tiny numbers; exponents beyond 32 bits, which wrap to tiny ones; and large exponents after more digits than 64
// bits hold, which it writes out. The CRD of AutoNodePolicy refuses exponents of more than two digits.
var endless = regexp.MustCompile(`[eE](-[0-9]{4,}|\+?[0-9]{10,})$|^[^eE]{18,}[eE]\+?[0-9]{6,}$`)

// FuzzRootVolume: whatever a policy says about the root volume, nothing panics. A volume that passes the check has a
// size that an EC2NodeClass accepts (K6, A-27).
func FuzzRootVolume(f *testing.F) {
	f.Add("75Gi", "gp3", int64(0), int64(0))
	f.Add("76800Mi", "IO1", int64(100), int64(0))
	f.Add("1e30", "", int64(-1), int64(9))
	f.Add("0.1m", "sc1", int64(0), int64(-9))
	f.Add("1e2000000000", "gp3", int64(0), int64(0)) // an hour, if anything writes it out
	f.Add("1234567890123456789e99999", "gp3", int64(0), int64(0))
	f.Fuzz(func(t *testing.T, size, kind string, iops, throughput int64) {
		change := policy.RootVolumeChange{Type: &kind}
		if endless.MatchString(size) {
			return
		}
		if quantity, err := resource.ParseQuantity(size); err == nil {
			change.Size = &quantity
		}
		if iops != 0 {
			change.IOPS = &iops
		}
		if throughput != 0 {
			change.Throughput = &throughput
		}
		volume := policy.DefaultRootVolume().With(&change)
		if len(volume.Check("x")) > 0 {
			return
		}
		normal, fits := policy.NormalSize(volume.Size)
		if !fits || normal.Cmp(volume.Size) != 0 || normal.Sign() <= 0 {
			t.Fatalf("%s passes, and is %s, %t", volume.Size.String(), normal.String(), fits)
		}
	})
}
