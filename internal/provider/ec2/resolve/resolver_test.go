package resolve_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// E-59: what a configuration lacks, and an interval that is too short, is named.
func TestConfigurationsAreChecked(t *testing.T) {
	t.Parallel()
	good := resolve.Config{
		EC2: &ec2.Client{}, SSM: &ssm.Client{}, IAM: &iam.Client{}, Now: time.Now, Cluster: "c", Region: "r",
	}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*resolve.Config){
		"EC2, SSM, IAM and Now": func(c *resolve.Config) { c.SSM = nil },
		`region ""`:             func(c *resolve.Config) { c.Region = "" },
		"subnet-refresh-interval is 30s: give at least 1m0s": func(c *resolve.Config) { c.SubnetRefresh = 30 * time.Second },
		"ami-refresh-interval is -1s":                        func(c *resolve.Config) { c.AMIRefresh = -time.Second },
	} {
		config := good
		change(&config)
		if _, err := resolve.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
