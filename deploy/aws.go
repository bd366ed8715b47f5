package deploy

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
)

//go:embed aws/*.json
var aws embed.FS

// The policies of IAM for a controller's role on AWS. Both have placeholders, see FillAWS.
const (
	// AWSController is for all that a cluster may ask for.
	AWSController = "controller-policy.json"
	// AWSSmall is for a cluster whose classes have spec.instanceProfile, without a queue.
	AWSSmall = "instance-profile-policy.json"
)

// AWSPolicy returns one of the policies, as JSON with placeholders. An unknown name is an error.
func AWSPolicy(name string) ([]byte, error) { return aws.ReadFile("aws/" + name) }

// placeholder matches what stands for a name of the user's: ${CLUSTER}.
var placeholder = regexp.MustCompile(`\$\{([A-Z_]*)\}`)

// FillAWS puts names in the place of a policy's placeholders, as envsubst does: AWS_PARTITION, AWS_REGION,
// AWS_ACCOUNT, CLUSTER, NODE_ROLE, QUEUE. A name that is missing, or that no policy could have, is an error.
func FillAWS(policy []byte, names map[string]string) ([]byte, error) {
	var wrong []string
	filled := placeholder.ReplaceAllFunc(policy, func(found []byte) []byte {
		key := string(placeholder.FindSubmatch(found)[1])
		name := names[key]
		if !allowedName.MatchString(name) {
			wrong = append(wrong, fmt.Sprintf("%s is %q", key, name))
		}
		return []byte(name)
	})
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return nil, fmt.Errorf("%v; letters, digits and any of _+=,.@/- are allowed", slices.Compact(wrong))
	}
	return filled, nil
}

// allowedName matches names of regions, accounts, clusters, roles with their paths, and queues.
var allowedName = regexp.MustCompile(`^[A-Za-z0-9_+=,.@/-]+$`)
