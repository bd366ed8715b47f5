package operator

import (
	"context"
	"fmt"
	"sync"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// bootstraps is what nodes of each class started with when its release was as its user asked for, by name. It is safe
// for concurrent use. A new process knows none.
type bootstraps struct {
	mu    sync.Mutex
	known map[string]*merge.Bootstrap
}

func (b *bootstraps) remember(class string, bootstrap *merge.Bootstrap) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil {
		b.known = map[string]*merge.Bootstrap{}
	}
	b.known[class] = bootstrap
}

func (b *bootstraps) of(class string) *merge.Bootstrap {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known[class]
}

// release is what nodes of a class start with, and what has to be said about their release.
type release struct {
	bootstrap *merge.Bootstrap
	said      condition.Value
	// missing is why a class waits that has no bootstrap for its release.
	missing string
	// withheld keeps an EC2NodeClass that is not there from being made.
	withheld *merge.Problem
}

// releaseOf finds out which release nodes of a class start with. A version that is asked for and not had is never
// ignored silently: with Secrets it is HyperShift that resolves it and says so in status.version, and until then nodes
// start with what they started with; with a file there is the one release of that file. The policy follows in either
// case.
func (c AWSConfig) releaseOf(ctx context.Context, class *hypershiftv1.OpenshiftEC2NodeClass,
	before *bootstraps) (release, error) {
	const kind = hypershiftv1beta1.ConditionTypeVersionResolved
	bootstrap, err := c.Bootstrap(ctx, class.Name)
	if err != nil {
		return release{}, err
	}
	asked := class.Spec.Version
	switch {
	case c.VersionsFromStatus && asked != "" && class.Status.Version != asked:
		r := release{bootstrap: before.of(class.Name),
			missing: fmt.Sprintf("version %s of spec.version is not resolved yet", asked)}
		r.said = condition.False(kind, hypershiftv1beta1.ReasonVersionNotResolved, fmt.Sprintf(
			"spec.version is %s, and status.version %q: nodes start as before until both are the same", asked,
			class.Status.Version))
		return r, nil
	case !c.VersionsFromStatus && asked != "" && asked != c.ReleaseVersion:
		only := "nodes start with the release that is provided"
		if c.ReleaseVersion != "" {
			only = "the release that is provided is " + c.ReleaseVersion
		}
		problem := merge.Problem{Reason: hypershiftv1beta1.ReasonVersionNotSupported, Field: "spec.version",
			Message: fmt.Sprintf(
				"take it away: it is %s, and %s", asked, only)}
		return release{bootstrap: bootstrap, withheld: &problem,
			said: condition.False(kind, problem.Reason, problem.String())}, nil
	}
	if bootstrap != nil {
		before.remember(class.Name, bootstrap)
	}
	return release{bootstrap: bootstrap, said: condition.True(kind, hypershiftv1beta1.ReasonVersionResolved, "")}, nil
}
