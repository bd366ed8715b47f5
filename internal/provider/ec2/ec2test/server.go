package ec2test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Account is the account whose resources the endpoint has.
const Account = "111122223333"

// The access key that Config signs with.
const (
	AccessKey = "AKIAJOINERTEST000001"
	othersKey = "AKIAJOINERTEST000002"
	secretKey = "a secret of tests, worth nothing"
)

const maxBody = 4 << 20

// Options configure an endpoint.
type Options struct {
	// Region is that of the endpoint; us-east-1 when empty. Instance types and zones are those of the data files.
	Region string
	// Now is the time of the world. When nil the endpoint has a clock that stands still until Advance moves it.
	Now func() time.Time
	// URL is where the endpoint is reached, for the URLs of queues and for Config. Start sets it.
	URL string
	// Keys are access keys beside AccessKey, with their secrets.
	Keys map[string]string
	// PageSize bounds every page of every listing, below what the caller asks for. 0 leaves it to the caller and EC2's
	// own bounds.
	PageSize int
	// Boot is how long an instance is pending, Shut how long it shuts down: 15 s and 30 s when 0.
	Boot, Shut time.Duration
	// Faults are the faults from the start.
	Faults Faults
	// Unjudged says why requests are not checked against the policies of package rights (E-58). "" means that they
	// are, except those of [Server.OthersConfig].
	Unjudged string
	// Forbidden receives every right that a request needs and a policy does not give; Start fails the test.
	Forbidden func(string)
	// Unknown receives every request that the endpoint cannot handle: an unknown parameter or action.
	Unknown func(string)
}

// Server simulates AWS. One lock guards all its state, so a request sees a consistent world.
type Server struct {
	url       string
	transport *http.Transport
	region    string
	unknown   func(string)

	mu       sync.Mutex
	now      func() time.Time
	skew     time.Duration // between the time of the world's signatures and that of this machine
	secrets  map[string]string
	pageSize int
	boot     time.Duration
	shut     time.Duration
	services map[string]service
	calls    []Call
	counts   map[string]int
	ids      int
	faults   faults
	judge    *judge // nil for none
	world
}

// New returns an endpoint, which is an http.Handler.
func New(o Options) (*Server, error) {
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	s := blank(o)
	types := map[string]ec2types.InstanceTypeInfo{}
	if err := load("instance-types", &types); err != nil {
		return nil, err
	}
	var offered []struct{ InstanceType, Location string }
	if err := load("offerings-"+o.Region, &offered); err != nil {
		return nil, fmt.Errorf("region %q has no data file: %w", o.Region, err)
	}
	for _, offering := range offered {
		if info, known := types[offering.InstanceType]; known {
			s.types[offering.InstanceType] = info
			s.zonesOf[offering.InstanceType] = append(s.zonesOf[offering.InstanceType], offering.Location)
		}
	}
	return s, s.setFaults(o.Faults)
}

// blank returns an endpoint that sells nothing.
func blank(o Options) *Server {
	if o.Unknown == nil {
		o.Unknown = func(string) {}
	}
	s := &Server{
		url: o.URL, transport: &http.Transport{MaxIdleConnsPerHost: 64},
		region: o.Region, unknown: o.Unknown, now: o.Now, pageSize: o.PageSize, services: services(),
		boot: cmp.Or(o.Boot, bootTime), shut: cmp.Or(o.Shut, shutTime),
		secrets: map[string]string{AccessKey: secretKey, othersKey: secretKey}, counts: map[string]int{},
		world: newWorld(),
	}
	maps.Copy(s.secrets, o.Keys)
	if o.Unjudged == "" && o.Forbidden != nil {
		s.judge = newJudge(o.Forbidden)
	}
	if s.now == nil {
		at := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
		s.now = func() time.Time { return at }
	}
	return s
}

// Start returns an endpoint that listens until the test ends. Requests that it cannot handle fail the test. So do
// requests that need a right which users do not give (E-58).
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Unknown == nil {
		o.Unknown = func(text string) { t.Errorf("ec2test: %s", text) }
	}
	if o.Forbidden == nil {
		o.Forbidden = func(text string) { t.Errorf("ec2test: %s", text) }
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(s)
	t.Cleanup(func() {
		s.transport.CloseIdleConnections()
		listener.Close()
	})
	s.url = listener.URL
	return s
}

// URL returns the URL of the endpoint.
func (s *Server) URL() string { return s.url }

// Now returns the time of the world.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

// Advance moves the time of the world on. Signatures still follow this machine's clock.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.now
	s.now = func() time.Time { return from().Add(d) }
	s.settle()
	s.tell()
}

// Skew shifts the clock for signatures and the header Date against that of this machine.
func (s *Server) Skew(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew = d
}

// SetPageSize bounds every page from now on.
func (s *Server) SetPageSize(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pageSize = size
}

// answer is the answer to a request.
type answer struct {
	protocol protocol
	action   string
	id       string
	result   any
	err      error
	lost     bool
	garbled  string
	delay    time.Duration
	clock    time.Time
	wait     time.Duration   // how long to wait for news
	news     <-chan struct{} // closed when there may be
}

// ServeHTTP answers a request of any service.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	a := s.serve(r, body, false)
	if a.delay > 0 {
		time.Sleep(a.delay)
	}
	s.await(r, body, &a)
	if a.lost {
		panic(http.ErrAbortHandler) // net/http closes the connection without an answer
	}
	w.Header().Set("Date", a.clock.UTC().Format(http.TimeFormat))
	if a.garbled != "" {
		garbled(w, a.garbled, func(w http.ResponseWriter) { s.write(w, a) })
		return
	}
	s.write(w, a)
}

// await repeats a waiting request whenever there may be news, until it has an answer or the caller's time is over.
func (s *Server) await(r *http.Request, body []byte, a *answer) {
	timeout := time.After(a.wait)
	for a.wait > 0 {
		select {
		case <-r.Context().Done():
			return
		case <-timeout:
			return
		case <-a.news:
			again := s.serve(r, body, true)
			a.result, a.err, a.wait, a.news = again.result, again.err, again.wait, again.news
		}
	}
}

// write writes an answer in its protocol.
func (s *Server) write(w http.ResponseWriter, a answer) {
	var no *refused
	switch {
	case a.err == nil:
		if err := a.protocol.answer(w, a); err != nil {
			s.unknown(fmt.Sprintf("the answer of %s cannot be written: %v", a.action, err))
		}
	case errors.As(a.err, &no):
		a.protocol.refuse(w, a.id, no)
	default:
		s.unknown(a.err.Error())
		a.protocol.refuse(w, a.id, &refused{status: 400, code: "UnknownParameter", message: a.err.Error()})
	}
}

// serve executes a request under the lock. again is true for a request that has waited.
func (s *Server) serve(r *http.Request, body []byte, again bool) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := answer{protocol: ec2Query{}, id: s.newID("req"), delay: s.faults.Latency.Duration,
		clock: time.Now().Add(s.skew)}
	who, err := verify(r, body, s.secrets, a.clock, cmp.Or(s.faults.SkewCode, codeExpired))
	of, known := s.services[who.service]
	if known {
		a.protocol = of.protocol
	}
	switch {
	case err != nil:
		a.err = err
	case !known:
		a.err = fmt.Errorf("the endpoint has no service %q", who.service)
	case who.region != s.region && !slices.Contains(globalServices, who.service):
		a.err = refuse(401, codeUnknownKey, "the scope has region %q; this endpoint is of %q", who.region, s.region)
	default:
		s.dispatch(&a, of, who, r, body, again)
	}
	return a
}

// globalServices are reached through a region of their own, whatever the cluster's.
var globalServices = []string{"iam", "pricing"}

// dispatch finds the action and runs it, with the faults before and after it.
func (s *Server) dispatch(a *answer, of service, who identity, r *http.Request, body []byte, again bool) {
	name, parameters, err := of.protocol.read(r, body)
	a.action = name
	if err != nil {
		a.err = err
		return
	}
	act, known := of.actions[name]
	if !known {
		a.err = fmt.Errorf("the endpoint has no action %s:%s", who.service, name)
		return
	}
	s.settle()
	c := &call{Server: s, parameters: parameters, at: who.region, Call: Call{Time: s.now(), Service: who.service,
		Action: name, Key: who.key}}
	if who.service == "iam" {
		c.at = "us-east-1" // whatever the signature says: AWS documents it for services without region
	}
	defer func() { a.wait, a.news = c.wait, s.news }()
	if again {
		a.result, a.err = act(c)
		return
	}
	s.counts[c.name()]++
	before := s.faults.lose(c, "before", s.faults.LostBefore)
	after := s.faults.lose(c, "after", s.faults.LostAfter)
	switch {
	case before != nil:
		a.lost, a.err = before.Status == 0, before.refusal()
	case s.faults.throttled(c, 1, ""):
		a.err = throttledBy(of.protocol)
	default:
		a.result, a.err = act(c)
		if a.err == nil && len(c.Asks) == 0 {
			a.err = fmt.Errorf("%s was done without asking for rights: a defect of the endpoint", c.name())
		}
		if after != nil {
			a.lost, a.err = after.Status == 0, after.refusal()
		}
	}
	a.garbled = s.faults.garble(c)
	var no *refused
	if errors.As(a.err, &no) {
		c.Code = no.code
	}
	c.Lost = before != nil || after != nil || a.garbled != ""
	s.calls = append(s.calls, c.Call)
	s.hold(c.Call)
}
