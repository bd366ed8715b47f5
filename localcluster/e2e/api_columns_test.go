package e2e

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// V-14, L-06, V-01: what the real kubectl prints, against the tables of the API's source. AGE is the only
// column the server decides alone; it is replaced by the word AGE.
func TestKubectlPrintsTheColumnsOfTheSource(t *testing.T) {
	t.Parallel()
	env := sharedEnvironment.Get(t)
	createColumnObjects(t, env)
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"NodePool", []string{"nodepools", "api-columns-default", "api-columns-fallback"}, `
NAME                   NODECLASS   NODES   READY   AGE
api-columns-default    default     4       True    AGE
api-columns-fallback   default     100     True    AGE`},
		{"NodePool wide", []string{"nodepools", "api-columns-default", "api-columns-fallback", "-o", "wide"}, `
NAME                   NODECLASS   NODES   READY   AGE   WEIGHT   CPU   MEMORY
api-columns-default    default     4       True    AGE   100      10    160Gi
api-columns-fallback   default     100     True    AGE            5     30Gi`},
		{"NodeClaim", []string{"nodeclaims", "api-columns-default-7lh6k", "api-columns-default-rw4vf"}, `
NAME                        TYPE         CAPACITY    ZONE         NODE                                            READY   AGE
api-columns-default-7lh6k   c6gn.large   spot        us-west-2b   ip-192-168-183-234.us-west-2.compute.internal   True    AGE
api-columns-default-rw4vf   c6gn.large   on-demand   us-west-2b   ip-192-168-91-38.us-west-2.compute.internal     True    AGE`},
		{"NodeClaim wide", []string{"nodeclaims", "api-columns-default-7lh6k", "api-columns-default-rw4vf", "-o",
			"wide"}, `
NAME                        TYPE         CAPACITY    ZONE         NODE                                            READY   AGE   ID                                      NODEPOOL   NODECLASS   IMAGEID                 DRIFTED
api-columns-default-7lh6k   c6gn.large   spot        us-west-2b   ip-192-168-183-234.us-west-2.compute.internal   True    AGE   aws:///us-west-2b/i-053c6b324e29d2275   default    default     ami-0b1e393fbe12f411c   True
api-columns-default-rw4vf   c6gn.large   on-demand   us-west-2b   ip-192-168-91-38.us-west-2.compute.internal     True    AGE   aws:///us-west-2a/i-053c6b324e29d2275   default    default`},
		{"NodeClaim just created", []string{"nodeclaims", "api-columns-new"}, `
NAME              TYPE   CAPACITY   ZONE   NODE   READY   AGE
api-columns-new                                           AGE`},
		{"NodeOverlay wide, by short name", []string{"overlays", "api-columns-overlay", "-o", "wide"}, `
NAME                  READY   AGE   WEIGHT
api-columns-overlay   False   AGE   10`},
		{"KWOKNodeClass by one short name", []string{"kwoknc", "api-columns-class"}, `
NAME                READY   AGE
api-columns-class   True    AGE`},
		{"KWOKNodeClass by the other", []string{"kwokncs", "api-columns-class", "-o", "wide"}, `
NAME                READY   AGE
api-columns-class   True    AGE`},
		{"EC2NodeClass wide, by one short name", []string{"ec2nc", "api-columns-class", "-o", "wide"}, `
NAME                READY   AGE   ROLE
api-columns-class   True    AGE   nodes`},
		{"AutoNodePolicy", []string{"autonodepolicies", "api-columns-policy"}, `
NAME                 READY   REASON                    CONFORMING   PROTECTED   AGE
api-columns-policy   False   ConflictingRequirements   False        True        AGE`},
		{"OpenshiftNodePool wide, by one short name", []string{"onp", "api-columns-pool", "-o", "wide"}, `
NAME               NODECLASS   NODES   READY   AGE   COMPATIBLE   POLICY   WEIGHT   CPU   MEMORY
api-columns-pool   default     4       False   AGE   False        True     10       16    64Gi`},
		{"OpenshiftEC2NodeClass wide, by one short name", []string{"oec2ncs", "api-columns-class", "-o", "wide"}, `
NAME                READY   AGE   POLICY
api-columns-class   True    AGE   True`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := hideAge(env.mustKubectl(t, "", append([]string{"get"}, tc.args...)...))
			if want := strings.TrimPrefix(tc.want, "\n"); got != want {
				t.Errorf("kubectl printed\n%s\nwant\n%s", got, want)
			}
		})
	}
	t.Run("all kinds are in the category karpenter", func(t *testing.T) {
		t.Parallel()
		got := env.mustKubectl(t, "", "api-resources", "--categories=karpenter", "--no-headers", "-o", "name")
		for _, want := range []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "nodeoverlays.karpenter.sh",
			"kwoknodeclasses.karpenter.kwok.sh", "ec2nodeclasses.karpenter.k8s.aws",
			"autonodepolicies.karpenter.hypershift.openshift.io",
			"openshiftnodepools.karpenter.hypershift.openshift.io",
			"openshiftec2nodeclasses.karpenter.hypershift.openshift.io"} {
			if !strings.Contains(got, want+"\n") {
				t.Errorf("%s is missing in\n%s", want, got)
			}
		}
	})
}

// createColumnObjects creates the objects of testdata/columns.yaml with their status and removes them
// when the test ends.
func createColumnObjects(t *testing.T, env *environment) {
	t.Helper()
	content, err := os.ReadFile("testdata/columns.yaml")
	if err != nil {
		t.Fatal(err)
	}
	client, _ := env.dynamicClient(t)
	for _, document := range bytes.Split(content, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			t.Fatal(err)
		}
		resource := resourceClient(t, client, object)
		created, err := resource.Create(t.Context(), object,
			metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { removeObject(t, resource, object.GetName()) })
		status, found := object.Object["status"]
		if !found {
			continue
		}
		created.Object["status"] = status
		if _, err := resource.UpdateStatus(t.Context(), created,
			metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Fatal(err)
		}
	}
}

// hideAge replaces the ages in kubectl's table by the word AGE, in a column of the same width, and trims the ends of
// lines. The width of kubectl's column depends on how long the machine took.
func hideAge(table string) string {
	lines := strings.Split(strings.TrimRight(table, "\n"), "\n")
	column := strings.Index(lines[0], "AGE")
	if column < 0 {
		return table
	}
	width := len(regexp.MustCompile(`^AGE *`).FindString(lines[0][column:]))
	last := width == len(lines[0])-column // then an age may be wider than the word
	for i, line := range lines {
		after := ""
		if !last && len(line) > column+width {
			after = "   " + line[column+width:]
		}
		lines[i] = strings.TrimRight(line[:min(column, len(line))]+"AGE"+after, " ")
	}
	return strings.Join(lines, "\n")
}
