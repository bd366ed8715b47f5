package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
)

// openAPISchema is the part of a served OpenAPI v3 schema with fields and their descriptions.
type openAPISchema struct {
	Description          string                   `json:"description"`
	Properties           map[string]openAPISchema `json:"properties"`
	Items                *openAPISchema           `json:"items"`
	AdditionalProperties json.RawMessage          `json:"additionalProperties"`
}

// V-01, L-02: every field of ours has a description, as the API server serves it.
func TestEveryFieldHasADescription(t *testing.T) {
	t.Parallel()
	env := sharedEnvironment.Get(t)
	clients, err := kubernetes.NewForConfig(env.config)
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	for name, kind := range apiKinds() {
		group, version := kind.resource.Group, kind.resource.Version
		content, err := clients.RESTClient().Get().AbsPath("/openapi/v3/apis/" + group + "/" +
			version).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var document struct {
			Components struct {
				Schemas map[string]openAPISchema `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(content, &document); err != nil {
			t.Fatal(err)
		}
		for schemaName, schema := range document.Components.Schemas {
			if strings.HasSuffix(schemaName, "."+name) {
				fields += checkDescriptions(t, name, schema)
			}
		}
	}
	const fewest = 80 // NodePool alone has more than half of them.
	if fields < fewest {
		t.Errorf("only %d fields were found, want at least %d: are the schemas found at all?", fields, fewest)
	}
}

// checkDescriptions counts the fields below a schema and reports those without a sentence.
func checkDescriptions(t *testing.T, path string, schema openAPISchema) int {
	t.Helper()
	count := 0
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		field, fieldPath := schema.Properties[name], path+"."+name
		if fieldPath == strings.SplitN(path, ".", 2)[0]+".metadata" {
			continue // The API server's own.
		}
		count++
		if len(strings.Fields(field.Description)) < 4 {
			t.Errorf("%s has the description %q, want a sentence", fieldPath, field.Description)
		}
		count += checkDescriptions(t, fieldPath, field)
		if field.Items != nil {
			count += checkDescriptions(t, fieldPath, *field.Items)
		}
	}
	return count
}

// The proof asked for in docs/spec/api.md: what the real kubectl says about fields, objects and their
// parts. kubectl prints <no description> for what has none.
func TestKubectlExplainsFields(t *testing.T) {
	t.Parallel()
	env := sharedEnvironment.Get(t)
	for path, want := range map[string]string{
		"nodepool.spec.hardLimits":                                    "never passed",
		"nodepool.spec.limits":                                        "soft limits",
		"nodepool":                                                    "pods that find no room",
		"nodepool.spec":                                               "hardLimits",
		"nodepool.spec.disruption":                                    "consolidateAfter",
		"nodepool.spec.disruption.budgets":                            "rounded up",
		"nodepool.spec.template.metadata":                             "labels",
		"nodepool.spec.template.spec":                                 "terminationGracePeriod",
		"nodepool.spec.template.spec.taints":                          "effect",
		"nodepool.spec.template.spec.nodeClassRef":                    "API group",
		"nodepool.spec.template.spec.requirements":                    "minValues",
		"nodepool.status":                                             "nodeClassObservedGeneration",
		"nodepool.status.conditions":                                  "lastTransitionTime",
		"nodeclaim.spec":                                              "startupTaints",
		"nodeclaim.spec.resources":                                    "requests",
		"nodeclaim.status":                                            "lastPodEventTime",
		"nodeoverlay.spec":                                            "priceAdjustment",
		"kwoknodeclass.spec":                                          "nodeRegistrationDelay",
		"kwoknodeclass.status.conditions":                             "observedGeneration",
		"ec2nodeclass.spec":                                           "amiSelectorTerms",
		"ec2nodeclass.spec.blockDeviceMappings":                       "rootVolume",
		"ec2nodeclass.spec.kubelet":                                   "evictionSoftGracePeriod",
		"ec2nodeclass.status.amis":                                    "deprecated",
		"autonodepolicy":                                              "Only the policy named default is recognised",
		"autonodepolicy.spec.nodePoolDefaults.requirements":           "users can narrow down what is allowed and not widen it",
		"autonodepolicy.spec.ec2NodeClassDefaults":                    "they replace what a user sets",
		"autonodepolicy.spec.ec2NodeClassDefaults.rootVolume":         "75Gi, gp3, encrypted",
		"autonodepolicy.status":                                       "observedGeneration",
		"openshiftnodepool":                                           "with the requirements of the provider's policy put before its own",
		"openshiftnodepool.spec.template.spec.nodeClassRef":           "EC2NodeClass named default",
		"openshiftnodepool.spec.template.spec.requirements":           "within what the provider's policy allows",
		"openshiftnodepool.status.observedPolicy":                     "generation",
		"openshiftec2nodeclass.spec.blockDeviceMappings":              "RootVolumeOverridden",
		"openshiftec2nodeclass.spec.kubelet":                          "passed through",
		"openshiftec2nodeclass.spec.capacityReservationSelectorTerms": "instanceMatchCriteria",
		"scheduler.spec":                                              "cannot be true while",
		"scheduler.spec.schedulingGroups":                             "There are no wildcards",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			got := env.mustKubectl(t, "", "explain", path)
			if strings.Contains(got, "<no description>") || strings.Contains(got, "<empty>") {
				t.Errorf("something has no description:\n%s", got)
			}
			if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
				t.Errorf("%q is missing in\n%s", want, got)
			}
		})
	}
}
