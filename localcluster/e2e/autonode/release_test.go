package autonode

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// with a file there is one release of nodes. A class that asks for another says so, and is not made.
func TestA08_AVersionThatIsNotProvidedIsSaid(t *testing.T) {
	w := begin(t)
	w.policy(root("{volumeSize: 90Gi}"))
	for _, c := range []struct {
		flags        []string
		name, except string // the version that is provided
	}{{nil, "a08-unknown", ""}, {[]string{"--release-version=4.21.0"}, "a08-known", "4.21.0"}} {
		w.run(c.flags...)
		w.class(c.name, object{"monitoring": "Basic", "version": "4.20.0"})
		w.classSays(c.name, "VersionResolved", "False", "VersionNotSupported", "take it away: it is 4.20.0")
		w.classSays(c.name, "Ready", "False", "VersionNotSupported")
		w.policySays("False", "VersionNotSupported", c.name)
		w.stays("the class", func() any { return w.get(nodeClassKind, c.name) == nil })
		spec := object{"monitoring": "Basic"}
		if c.except != "" {
			spec["version"] = c.except
		}
		w.class(c.name, spec)
		w.rooted("{volumeSize: 90Gi, volumeType: gp3, encrypted: true}", c.name)
		w.classSays(c.name, "VersionResolved", "True", "")
		w.policySays("True", "")
		w.class(c.name, object{"monitoring": "Basic", "version": "4.20.0"})
		w.classSays(c.name, "VersionResolved", "False", "VersionNotSupported")
		w.policy(root("{volumeSize: 95Gi}")) // existing classes stay, and follow the policy
		w.rooted("{volumeSize: 95Gi, volumeType: gp3, encrypted: true}", c.name)
		w.policy(root("{volumeSize: 90Gi}"))
	}
	if err := w.try(w.cadmin,
		newObject(classWrapper, "", "a08-new", object{"version": "newest"})); !apierrors.IsInvalid(err) {
		t.Errorf("a version that is none is answered with %v", err)
	}
}

// with Secrets HyperShift resolves a version, and status.version tells it.
func TestA08_AVersionIsAwaited(t *testing.T) {
	w := begin(t)
	w.maySeeSecrets()
	for class, content := range map[string]string{"default": "boot", "a08": "boot of 4.20.0"} {
		secret := userData(class, content)
		if err := w.sre.Create(w.ctx, secret); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.sre.Delete(w.ctx, secret) })
	}
	w.run("--userdata-secrets")
	t.Cleanup(func() { w.run() }) // before its rights go
	resolve := func(version string) {
		t.Helper()
		if err := w.exempt.Status().Patch(w.ctx, newObject(classWrapper, "", "a08", nil),
			mergePatch(object{"status": object{"version": version}})); err != nil {
			t.Fatal(err)
		}
	}
	w.class("a08", object{"monitoring": "Basic", "version": "4.20.0"})
	w.classSays("a08", "VersionResolved", "False", "VersionNotResolved", "4.20.0")
	w.stays("the class", func() any { return w.get(nodeClassKind, "a08") == nil })
	resolve("4.20.0")
	w.booted("a08", "boot of 4.20.0")
	w.classSays("a08", "VersionResolved", "True", "")
	w.class("a08", object{"monitoring": "Basic", "version": "4.21.0"})
	w.classSays("a08", "VersionResolved", "False", "VersionNotResolved", "4.21.0")
	secret := userData("a08", "boot of 4.21.0")
	if err := w.sre.Update(w.ctx, secret); err != nil {
		t.Fatal(err)
	}
	w.class("a08", object{"monitoring": "Detailed", "version": "4.21.0"})
	w.eventually("the rest of the class to be written", func() (bool, string) {
		spec := field(w.get(nodeClassKind, "a08"), "spec")
		return spec.(object)["detailedMonitoring"] == true, show(spec)
	})
	w.booted("a08", "boot of 4.20.0")
	resolve("4.21.0")
	w.booted("a08", "boot of 4.21.0")
	w.class("a08", object{"monitoring": "Basic"})
	w.classSays("a08", "VersionResolved", "True", "")
}
