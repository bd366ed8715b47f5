package resolve

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

// How long the value of a parameter holds (E-08).
const (
	parameterFor = 24 * time.Hour
	// suspectFor is for a value whose image is deprecated or gone.
	suspectFor = 30 * time.Minute
	// missingFor is for a parameter that does not exist: a typing error, or a release that is not out yet.
	missingFor = 5 * time.Minute
	forever    = time.Duration(math.MaxInt64)
)

// getParameter reads one parameter at a time. GetParameters, which reads ten, needs another right that Karpenter's
// policy does not have (E-58). An alias has at most five parameters, and they are read once a day.
const getParameter = "ssm:GetParameter"

// parameter is a parameter that a class needs.
type parameter struct {
	name   string
	pinned bool // its value never changes
}

// parametersOf returns the parameters of a term: those of its alias, or the one that it names.
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

// askParameters asks for all due parameters, and stops at trouble of AWS.
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
	for i, name := range due {
		err := r.readParameter(ctx, name)
		if err == nil {
			continue
		}
		failed := due[i : i+1]
		if !ofOneName(err) {
			failed = due[i:]
		}
		for _, name := range failed {
			r.knownParameters.failed(name, r.now(), failureOf(getParameter, err))
		}
		if !ofOneName(err) {
			return
		}
	}
}

// ofOneName reports whether a refusal may be about the name alone, such as a malformed one or one of another account.
// Then the other parameters are still read. Trouble of AWS concerns them too.
func ofOneName(err error) bool {
	r := refusal.Of(err)
	return r.Code != "" && r.Class != refusal.Throttle && r.Class != refusal.Server
}

// readParameter reads one parameter. If it does not exist, its value is "".
func (r *Resolver) readParameter(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := r.now()
	out, err := r.config.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
	switch {
	case slices.Contains(noParameter(), refusal.Of(err).Code):
		r.knownParameters.answered(name, asked, "")
	case err != nil:
		return err
	case out.Parameter == nil || out.Parameter.Value == nil:
		return errNoContent
	default:
		r.knownParameters.answered(name, asked, strings.TrimSpace(*out.Parameter.Value))
	}
	return nil
}

// noParameter returns the codes for a missing parameter, or a missing version of it.
func noParameter() []string { return []string{"ParameterNotFound", "ParameterVersionNotFound"} }

// parameterHolds returns how long a value holds. If its image is deprecated or gone, it is read again sooner, so that
// a withdrawn release is replaced soon.
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
