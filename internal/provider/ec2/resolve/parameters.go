package resolve

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/batch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

// How long the value of a parameter holds (E-08).
const (
	parameterFor = 24 * time.Hour
	// suspectFor is for one whose image is deprecated or gone.
	suspectFor = 30 * time.Minute
	// missingFor is for a parameter that does not exist: one that was mistyped, or a release that is not out yet.
	missingFor = 5 * time.Minute
	forever    = time.Duration(math.MaxInt64)
	// mostNames is how many parameters one call takes.
	mostNames = 10
)

const getParameters = "ssm:GetParameters"

// parameter is a parameter that a class needs.
type parameter struct {
	name   string
	pinned bool // its value never changes
}

// parametersOf returns the parameters that a term needs: those of an alias, or the one that it names.
func parametersOf(term awsv1.AMISelectorTerm, kubernetes string) (list []parameter) {
	if term.SSMParameter != "" {
		i := strings.LastIndex(term.SSMParameter, ":")
		number := term.SSMParameter[i+1:]
		pinned := i > 0 && number != "" && strings.Trim(number, "0123456789") == ""
		return []parameter{{term.SSMParameter, pinned}}
	}
	family, release := aliasOf(term)
	if kubernetes == "" {
		return nil
	}
	for _, c := range candidates(family, release, kubernetes) {
		list = append(list, parameter{c.parameter, release != latest})
	}
	return list
}

// askParameters asks for all parameters that are due, ten in a call.
func (r *Resolver) askParameters(ctx context.Context, classes []*awsv1.EC2NodeClass, kubernetes string) {
	wanted := map[string]bool{} // name → pinned
	var names []string
	for _, class := range classes {
		if unsupported(&class.Spec, kubernetes) != "" {
			continue
		}
		for _, term := range class.Spec.AMISelectorTerms {
			for _, p := range parametersOf(term, kubernetes) {
				wanted[p.name] = p.pinned
				names = append(names, p.name)
			}
		}
	}
	due := r.knownParameters.due(r.now(), names, func(name, value string) time.Duration {
		return r.parameterHolds(parameter{name, wanted[name]}, value)
	})
	for chunk := range slices.Chunk(due, mostNames) {
		failed := batch.Apart(ctx, chunk, r.readParameters, ofOneName)
		for _, name := range chunk {
			if err := failed[name]; err != nil {
				r.knownParameters.failed(name, r.now(), failureOf(getParameters, err))
			}
		}
	}
}

// ofOneName reports whether a refusal may be for one of the names, such as one that is malformed or of another account:
// the parameters of others are not to suffer.
func ofOneName(err error) batch.Fault {
	if r := refusal.Of(err); r.Code == "" || r.Class == refusal.Throttle || r.Class == refusal.Server {
		return batch.OfTheCall
	}
	return batch.OfAnID
}

// readParameters asks for some names. Those that do not exist have the value "".
func (r *Resolver) readParameters(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := r.now()
	out, err := r.config.SSM.GetParameters(ctx, &ssm.GetParametersInput{Names: names})
	if err != nil {
		return err
	}
	for _, name := range names {
		i := slices.IndexFunc(out.Parameters, func(p ssmtypes.Parameter) bool { return called(p, name) })
		switch {
		case i >= 0:
			r.knownParameters.answered(name, asked, strings.TrimSpace(value(out.Parameters[i].Value)))
		case slices.Contains(out.InvalidParameters, name):
			r.knownParameters.answered(name, asked, "")
		default:
			r.knownParameters.failed(name, asked, failureOf(getParameters, errNoContent))
		}
	}
	return nil
}

// called reports whether a parameter is the one that was asked for: by name or ARN, with or without its version.
func called(p ssmtypes.Parameter, name string) bool {
	selector := value(p.Selector)
	return slices.Contains([]string{value(p.Name), value(p.Name) + selector, value(p.ARN), value(p.ARN) + selector}, name)
}

// parameterHolds is how long a value holds. One whose image is deprecated or gone is asked for sooner, so that a
// withdrawn release is left soon.
func (r *Resolver) parameterHolds(p parameter, text string) time.Duration {
	switch {
	case text == "":
		return missingFor
	case p.pinned:
		return forever
	}
	a := r.knownImages.get(idKey(text))
	if a.known && (len(a.value) == 0 || !a.value[0].usable() || a.value[0].deprecated(r.now())) {
		return suspectFor
	}
	return parameterFor
}

func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}
