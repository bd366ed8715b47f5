package certificate

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// issued is content of one authority and one certificate.
func issued(t *testing.T, from time.Time, lifetime time.Duration, hosts ...string) Content {
	t.Helper()
	made, authority, err := Terms{Name: "given", Hosts: hosts, Lifetime: lifetime}.issue(from)
	if err != nil {
		t.Fatal(err)
	}
	return Content{
		Certificate: Part{"--tls-cert-file", made.certificate}, Key: Part{"--tls-key-file", made.key},
		Authorities: Part{"--tls-ca-file", block("CERTIFICATE", authority.Raw)},
	}
}

const host = "hook.space.svc"

// V-20, X-12: the files of two replicas are replaced two minutes apart, with another authority. Clients learn of the
// published bundle three minutes late. No request with a new connection fails. In the end, both replicas have the new
// certificate, the old authority is not published any more, and nobody writes.
func TestGivenCertificatesAreReplacedUnderRequests(t *testing.T) {
	t.Parallel()
	now := began()
	first, second := issued(t, now, Lifetime, host), issued(t, now, Lifetime, host)
	b := &board{meanwhile: func() {}}
	contents := []Content{first, first}
	var replicas []*Given
	var urls []string
	for i := range contents {
		g, err := NewGiven(GivenConfig{Read: func() (Content, error) { return contents[i], nil },
			Hosts: []string{host}, Targets: []Target{b}}, now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Step(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "yes")
		}))
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: g.GetCertificate}
		server.StartTLS()
		defer server.Close()
		replicas, urls = append(replicas, g), append(urls, server.URL)
	}
	changes, said, last := map[Change]int{}, [][]byte{b.bundle}, 0
	for minute := range 60 {
		switch minute {
		case 5:
			contents[0] = second
		case 7:
			contents[1] = second
		case 40:
			last = b.version
		}
		heard := said[max(0, len(said)-3)]
		now = now.Add(time.Minute)
		for i, g := range replicas {
			change, err := g.Step(t.Context(), now)
			if err != nil {
				t.Fatal(err)
			}
			changes[change]++
			for _, url := range urls {
				if err := ask(url, heard, now); err != nil {
					t.Fatalf("minute %d, after a step of replica %d: %v", minute, i, err)
				}
			}
		}
		said = append(said, b.bundle)
	}
	if changes[Announced] != 2 || changes[Renewed] != 2 {
		t.Errorf("changes %v", changes)
	}
	if string(b.bundle) != string(second.Authorities.Data) || last != b.version {
		t.Errorf("published in the end, by %d writes of which %d are late: %s", b.version, b.version-last, b.bundle)
	}
	for i, g := range replicas {
		if served, err := g.GetCertificate(nil); err != nil || !served.Leaf.Equal(g.current.pair.leaf()) ||
			string(g.Bundle()) != string(second.Authorities.Data) || g.current.content.equal(first) {
			t.Errorf("replica %d serves the old certificate, %v", i, err)
		}
	}
}

// V-20: files that cannot be served are refused with their name and the reason: at the start; and later, when read
// twice, since files are not replaced all at once. Then the old ones are still served.
func TestBadGivenCertificatesAreNamed(t *testing.T) {
	t.Parallel()
	now := began()
	good := issued(t, now, time.Hour, host)
	other := issued(t, now, time.Hour, host)
	with := func(change func(*Content)) Content {
		c := good
		change(&c)
		return c
	}
	for want, content := range map[string]Content{
		"--tls-cert-file and --tls-key-file: tls: private key does not match public key": with(func(c *Content) {
			c.Key = other.Key
		}),
		"--tls-cert-file and --tls-key-file: tls: failed to find any PEM data in key input": with(func(c *Content) {
			c.Key.Data = nil
		}),
		"--tls-cert-file is valid from 2025-12-29T23:00:00Z to 2025-12-31T00:00:00Z": issued(t,
			now.Add(-2*day), day, host),
		`--tls-cert-file is not for "hook.space.svc", by which the API server calls: x509: ce`: issued(t, now,
			time.Hour, "other.space.svc"),
		"--tls-ca-file: no certificate in PEM": with(func(c *Content) {
			c.Authorities.Data = []byte("x")
		}),
		"--tls-cert-file is not trusted by who trusts --tls-ca-file: x509: certificate signed": with(func(c *Content) {
			c.Authorities = other.Authorities
		}),
	} {
		if _, err := NewGiven(GivenConfig{Read: func() (Content, error) { return content, nil },
			Hosts: []string{host}}, now); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("at the start: %v\nwant %s", err, want)
		}
		current := good
		g, err := NewGiven(GivenConfig{Read: func() (Content, error) { return current, nil }, Hosts: []string{host}},
			now)
		if err != nil {
			t.Fatal(err)
		}
		current = content
		if _, err := g.Step(t.Context(), now); err != nil {
			t.Errorf("read once: %v", err)
		}
		if _, err := g.Step(t.Context(), now); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("read twice: %v\nwant %s", err, want)
		}
		if served, err := g.GetCertificate(nil); err != nil || served == nil || g.next != nil {
			t.Errorf("served no more: %v", err)
		}
	}
}

// V-20: when the served certificate has expired, its successor is served at once. Without a successor, there is an
// error.
func TestAnExpiredGivenCertificate(t *testing.T) {
	t.Parallel()
	now := began()
	current := issued(t, now, time.Hour, host)
	g, err := NewGiven(GivenConfig{Read: func() (Content, error) { return current, nil }, Hosts: []string{host},
		Targets: []Target{&board{meanwhile: func() {}}}}, now)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Hour)
	if _, err := g.Step(t.Context(), now); err == nil ||
		!strings.Contains(err.Error(), "--tls-cert-file has expired at 2026-01-01T01:00:00Z") {
		t.Errorf("expired: %v", err)
	}
	current = issued(t, now, time.Hour, host)
	if change, err := g.Step(t.Context(), now); change != Replaced || err != nil {
		t.Errorf("change %q, %v", change, err)
	}
}

// V-20: an object that may be missing holds nothing up while it is, and one that is wrong still does.
func TestATargetThatMayBeMissing(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	for name, ready := range map[string]bool{"none.example.com": true, "plain.example.com": false} {
		k := keeper(t, c, IfPresent(ConvertedDefinition(c, name)))
		if _, err := k.Step(t.Context(), began()); (err == nil) != ready || k.Ready() != ready {
			t.Errorf("%s: ready %t, %v", name, k.Ready(), err)
		}
	}
}
