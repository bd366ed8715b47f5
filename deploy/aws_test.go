package deploy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/deploy"
)

// E-58: a missing or impossible name is reported, and nothing is left to fill in.
func TestPoliciesAreFilledIn(t *testing.T) {
	t.Parallel()
	text := []byte(`"${AWS_REGION} ${CLUSTER} ${CLUSTER} ${QUEUE}"`)
	filled, err := deploy.FillAWS(text, map[string]string{"AWS_REGION": "eu-west-1", "CLUSTER": "c1",
		"QUEUE": "a.fifo"})
	if err != nil || string(filled) != `"eu-west-1 c1 c1 a.fifo"` {
		t.Errorf("%s, error %v", filled, err)
	}
	_, err = deploy.FillAWS(text, map[string]string{"AWS_REGION": "eu-west-1", "CLUSTER": `c1"`})
	if err == nil ||
		err.Error() != `[CLUSTER is "c1\"" QUEUE is ""]; letters, digits and any of _+=,.@/- are allowed` {
		t.Errorf("error %v", err)
	}
	if _, err := deploy.AWSPolicy("none"); err == nil {
		t.Error("a policy that does not exist is read")
	}
}

// E-58: the page says how to fill in whatever a policy has.
func TestThePageNamesEveryPlaceholder(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/aws-rights.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{deploy.AWSController, deploy.AWSSmall} {
		text, err := deploy.AWSPolicy(file)
		if err != nil {
			t.Fatal(err)
		}
		for rest := string(text); ; {
			_, after, found := strings.Cut(rest, "${")
			if !found {
				break
			}
			name, more, _ := strings.Cut(after, "}")
			rest = more
			if !strings.Contains(string(page), "export "+name+"=") {
				t.Errorf("%s has ${%s}, which docs/aws-rights.md does not fill in", file, name)
			}
		}
	}
}
