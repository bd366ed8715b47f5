package cluster

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestOptionsNameTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for want, options := range map[string]Options{
		"Options.Binary is empty":     {},
		"make bin/controlplane":       {Binary: filepath.Join(t.TempDir(), "missing")},
		"not an executable file":      {Binary: t.TempDir()},
		"Options.ReadyTimeout is -1s": {Binary: program, ReadyTimeout: -time.Second},
		`Options.Components names "kubelet"`: {
			Binary: program, Components: []Component{Etcd, APIServer, "kubelet"},
		},
		"kube-apiserver must be among them": {Binary: program, Components: []Component{Etcd}},
		`Options.ExtraArgs names the component "k`: {Binary: program, ExtraArgs: map[Component][]string{
			"kubelet": nil,
		}},
	} {
		if _, err := options.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestIdentitiesThatCannotBeAFileOrAServerAreRefused(t *testing.T) {
	t.Parallel()
	for want, identity := range map[string]Identity{
		`Identity.Name is ""`:         {},
		`Identity.Name is "../a"`:     {Name: "../a"},
		`Identity.Name is "system:x"`: {Name: "system:x"},
		`Identity.Server is "::"`:     {Name: "a", Server: "::"},
		`Identity.Server is "ftp`:     {Name: "a", Server: "ftp://127.0.0.1"},
	} {
		if err := identity.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if err := (Identity{Name: "joiner", User: "system:x", Server: "https://127.0.0.1:1"}).validate(); err != nil {
		t.Error(err)
	}
}

func TestFreePortsAreDistinctAndOnlyTheNamedOnesChange(t *testing.T) {
	t.Parallel()
	first, reserved, err := ports(nil).withFree(allPorts())
	if err != nil {
		t.Fatal(err)
	}
	defer reserved.Release()
	seen := map[int]portName{}
	for _, name := range allPorts() {
		if other, ok := seen[first[name]]; ok || first[name] == 0 {
			t.Errorf("port %d of %s is zero or that of %s", first[name], name, other)
		}
		seen[first[name]] = name
	}
	second, other, err := first.withFree(APIServer.ports())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Release()
	for _, name := range allPorts() {
		if changed := first[name] != second[name]; changed != (name == apiServerPort) {
			t.Errorf("port of %s: %d, then %d", name, first[name], second[name])
		}
	}
}

func TestPortsOfTheLastRunAreReadOrIgnored(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), portsFile)
	if got, err := loadPorts(path); got != nil || err != nil {
		t.Errorf("without a file: %v, %v", got, err)
	}
	saved, reserved, err := ports(nil).withFree(allPorts())
	if err != nil {
		t.Fatal(err)
	}
	defer reserved.Release()
	if err := savePorts(path, saved); err != nil {
		t.Fatal(err)
	}
	if got, err := loadPorts(path); err != nil || got[kwokPort] != saved[kwokPort] {
		t.Errorf("read %v, %v; want %v", got, err, saved)
	}
	delete(saved, kwokPort)
	if err := savePorts(path, saved); err != nil {
		t.Fatal(err)
	}
	if got, err := loadPorts(path); got != nil || err != nil {
		t.Errorf("with a port missing: %v, %v", got, err)
	}
}

// etcd trusts every certificate of its authority, without authorization. So no
// user of the API server may have one.
func TestUsersOfTheAPIServerAreStrangersToEtcd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := loadPKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	config, err := p.probeTLS(p.users)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []struct {
		signer *authority
		valid  bool
	}{{p.users, true}, {p.etcd, false}, {p.frontProxy, false}} {
		roots := x509.NewCertPool()
		roots.AddCert(check.signer.certificate)
		_, err := leaf.Verify(x509.VerifyOptions{
			Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		})
		if valid := err == nil; valid != check.valid {
			t.Errorf("a user's certificate against %s: valid %t, want %t", check.signer.path, valid, check.valid)
		}
	}
	again, err := loadPKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !again.users.certificate.Equal(p.users.certificate) {
		t.Error("a second start made a new authority")
	}
}

func TestAuditCountsFinishedRequestsAndLeavesOutTheLineBeingWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), auditLogFile)
	log :=
		`{"stage":"ResponseComplete","verb":"create","user":{"username":"s"},"userAgent":"kube-scheduler","objectRef":{"resource":"pods","subresource":"binding"},"responseStatus":{"code":201},"stageTimestamp":"2025-01-02T03:04:05.678901Z"}
{"stage":"ResponseComplete","verb":"create","user":{"username":"s"},"userAgent":"kube-scheduler","objectRef":{"resource":"pods","subresource":"binding"},"responseStatus":{"code":201}}
{"stage":"ResponseStarted","verb":"watch","user":{"username":"s"},"objectRef":{"resource":"pods"}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"j"},"objectRef":{"apiGroup":"karpenter.sh","resource":"nodeclaims","subresource":"status"},"responseStatus":{"code":409}}
{"stage":"ResponseComp`
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	counts, err := CountRequests(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	bind := RequestKind{User: "s", UserAgent: "kube-scheduler", Verb: "create", Resource: "pods/binding"}
	patch := RequestKind{User: "j", Verb: "patch", Resource: "nodeclaims.karpenter.sh/status"}
	if counts[bind] != 2 || counts[patch] != 1 || counts.Total(nil) != 3 {
		t.Errorf("counts: %v", counts)
	}
	conflicts, err := CountRequests(path, func(e Event) bool { return e.Code == 409 })
	if err != nil || conflicts.Total(nil) != 1 {
		t.Errorf("conflicts: %v, %v", conflicts, err)
	}
	if _, err := CountRequests("", nil); err == nil || !strings.Contains(err.Error(), "Options.Audit") {
		t.Errorf("without a log: %v", err)
	}
}

func TestStoppingRemovesOnlyWhatTheClusterWrote(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := newSetup(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.remove(); err != nil {
		t.Fatal(err)
	}
	if err := s.unlock(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "notes.txt" {
		t.Errorf("left in the directory: %v", entries)
	}
}

func TestExtraArgumentsComeLast(t *testing.T) {
	t.Parallel()
	s, err := newSetup(Options{Dir: t.TempDir(), ExtraArgs: map[Component][]string{Scheduler: {"--v=4"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.unlock() }()
	for _, component := range startOrder() {
		args := s.args(component)
		if last := slices.Index(args, "--v=4") == len(args)-1; last != (component == Scheduler) {
			t.Errorf("arguments of %s: %v", component, args)
		}
	}
}
