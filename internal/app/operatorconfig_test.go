package app

import (
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

func awsOperator() OperatorConfig {
	config := DefaultOperatorConfig()
	config.Namespace, config.InfraID, config.InstanceProfile, config.UserDataSecrets = "hcp-a", "infra", "nodes", true
	return config
}

// G25: a platform adds the wrappers of its node classes, and one that has none adds no controller.
func TestPlatformsDecideWhichWrappersThereAre(t *testing.T) {
	t.Parallel()
	for platforms, want := range map[string]string{
		"AWS": "OpenshiftNodePool OpenshiftEC2NodeClass", "KWOK": "OpenshiftNodePool", "KWOK,AWS": "OpenshiftNodePool OpenshiftEC2NodeClass",
	} {
		config := awsOperator()
		config.Platforms = strings.Split(platforms, ",")
		if err := config.Validate(); err != nil {
			t.Fatal(err)
		}
		kinds, err := config.kinds(operator.ManagementClient{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, kind := range kinds {
			got = append(got, kind.Wrapper)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: wrappers %v, want %s", platforms, got, want)
		}
	}
}

// G7: the built-in size is the one that the source's tests demand.
func TestTheDefaultsOfTheOperatorAreThoseOfTheSource(t *testing.T) {
	t.Parallel()
	config := awsOperator()
	volume, err := config.rootVolume()
	if err != nil || volume.Size.String() != "75Gi" || volume.Type != "gp3" || !volume.Encrypted {
		t.Errorf("the root volume is %v, error %v", volume, err)
	}
	if enabled, err := config.policyEnabled(); err != nil || !enabled { // G24
		t.Errorf("the policy is enabled: %t, error %v", enabled, err)
	}
	if config.OnPolicyUnreadable != PolicyPermissive { // G15
		t.Errorf("an unreadable policy is %s", config.OnPolicyUnreadable)
	}
}
