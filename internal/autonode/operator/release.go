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

// bootstraps holds, by name of the class, what nodes started with when its release was last the requested one. It is
// safe for concurrent use. A new process knows none.
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

// release is what nodes of a class start with, and the condition about their release.
type release struct {
	bootstrap *merge.Bootstrap
	said      condition.Value
	// missing is why a class without a bootstrap for its release waits.
	missing string
	// withheld keeps a missing EC2NodeClass from being created.
	withheld *merge.Problem
}

// releaseOf finds out which release nodes of a class start with. It never silently ignores a requested version that is
// not available. With Secrets, HyperShift resolves the version and reports that in status.version; until then nodes
// start as before. With a file, only the release of that file is available. The policy is applied in either case.
func (c AWSConfig) releaseOf(ctx context.Context, class *hypershiftv1.OpenshiftEC2NodeClass,
	before *bootstraps) (release, error) {
	const kind = hypershiftv1beta1.ConditionTypeVersionResolved
	asked, resolved := class.Spec.Version, ""
	if c.VersionsFromStatus && class.Status.Version == asked {
		resolved = asked
	}
	bootstrap, err := c.Bootstrap(ctx, class.Name, resolved)
	if err != nil {
		return release{}, err
	}
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
