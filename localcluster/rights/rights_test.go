package rights

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const rules = `
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create]
- apiGroups: [karpenter.sh]
  resources: [nodepools, nodepools/status]
  verbs: [patch]
`

const auditLog = `{"stage":"ResponseComplete","verb":"create","userAgent":"joiner/v1","user":{"username":"joiner"},` +
	`"objectRef":{"resource":"events"},"responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"patch","userAgent":"joiner/v1","user":{"username":"joiner"},` +
	`"objectRef":{"resource":"nodepools","apiGroup":"karpenter.sh","subresource":"status"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","userAgent":"kubectl","user":{"username":"joiner"},` +
	`"objectRef":{"resource":"nodepools","apiGroup":"karpenter.sh"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","userAgent":"joiner/v1","user":{"username":"other"},` +
	`"objectRef":{"resource":"nodepools","apiGroup":"karpenter.sh"},"responseStatus":{"code":200}}
`

// U-11: rights that are granted but not needed are found, and so are outdated exceptions.
func TestU11_UnneededRightsAreFound(t *testing.T) {
	granted, err := Granted([]byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(auditLog), 0o600); err != nil {
		t.Fatal(err)
	}
	used, err := Used(path, "joiner", "joiner/")
	if err != nil {
		t.Fatal(err)
	}
	got := Unneeded(granted, used, map[Right]string{"create events": "a test", "get nodes": "a test"})
	want := []string{
		`"create events" is called spare (a test), and 1 requests need it`,
		`"create events.events.k8s.io" is granted, and no request needs it`,
		`"patch nodepools.karpenter.sh" is granted, and no request needs it`,
		`"get nodes" is called spare, and is not granted`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := Unneeded(granted, used, map[Right]string{"create events.events.k8s.io": "",
		"patch nodepools.karpenter.sh": ByChance, "create events": ByChance + "a test"}); len(got) > 0 {
		t.Errorf("all is needed or named: %q", got)
	}
}
