package userdata_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
)

// E-32, E-33: no user data is written with which no node could join. An empty setting of ours would also replace what
// the user wrote there.
func TestWithoutTheClusterThereIsNoUserData(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change               func(*userdata.Cluster)
		al2023, bottlerocket []string
	}{
		"all is known": {change: func(*userdata.Cluster) {}},
		"no endpoint": {func(c *userdata.Cluster) { c.Endpoint = "" }, []string{"endpoint"},
			[]string{"endpoint"}},
		"no authority": {func(c *userdata.Cluster) { c.CA = "" }, []string{"certificate authority"},
			[]string{"certificate authority"}},
		"no range": {func(c *userdata.Cluster) { c.CIDR = "" }, []string{"range of Services"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := node()
			c.change(&n.Cluster)
			text, err := userdata.AL2023("", n)
			lacking(t, "AL2023", text, err, c.al2023)
			text, err = userdata.Bottlerocket("[settings.kubernetes]\napi-server = 'https://mine'\n", n, "")
			lacking(t, "Bottlerocket", text, err, c.bottlerocket)
		})
	}
}

func lacking(t *testing.T, family, text string, err error, want []string) {
	t.Helper()
	var lacks *userdata.LacksError
	switch {
	case want == nil && (err != nil || text == ""):
		t.Errorf("%s: %q, %v", family, text, err)
	case want != nil && (!errors.As(err, &lacks) || !slices.Equal(lacks.What, want) || text != ""):
		t.Errorf("%s: %q, %v; want an error that %q is not known", family, text, err, want)
	}
}
