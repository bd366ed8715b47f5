package cli

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// reaching knows how to reach the leading controller.
type reaching struct {
	connection *Connection
	where      place
	port       int
	// instead tells users what works without a controller.
	instead string
}

// leader is the pod of the leading controller, and the way to it.
type leader struct {
	namespace, pod string
	to             Forwarder
}

func (l leader) String() string { return l.namespace + "/" + l.pod }

// find finds the leading controller.
func (with reaching) find(ctx context.Context, config Config, now time.Time) (leader, error) {
	client, err := config.Client(*with.connection)
	if err != nil {
		return leader{}, err
	}
	in := whatif.Surroundings{LeaseName: with.where.lease}
	in.Leases, err = leasesOf(ctx, client, with.where)
	if apierrors.IsForbidden(err) {
		return leader{},
			fmt.Errorf("who leads is not known, for want of the right to list leases.coordination.k8s.io: %s",
				with.instead)
	}
	if err != nil {
		return leader{}, err
	}
	leading, _ := in.Controllers(func(string, string) *corev1.Pod { return nil }, true, now)
	switch {
	case len(in.Leases) == 0:
		return leader{}, fmt.Errorf("%s: %s", whatif.NoLease(with.where.lease), with.instead)
	case len(leading) == 0:
		return leader{}, fmt.Errorf("no controller leads: %s", with.instead)
	}
	if config.Forward == nil {
		return leader{}, fmt.Errorf("no pod can be reached from here: %s", with.instead)
	}
	forwarder, err := config.Forward(*with.connection)
	if err != nil {
		return leader{}, err
	}
	namespace, _, _ := strings.Cut(leading[0].Lease, "/")
	return leader{namespace, leading[0].Leader, forwarder}, nil
}

// forward opens a local address that leads to the read API of a pod.
func (with reaching) forward(ctx context.Context, l leader) (address string, stop func(), err error) {
	address, stop, err = l.to.Forward(ctx, l.namespace, l.pod, with.port)
	switch {
	case apierrors.IsForbidden(err) || err != nil && strings.Contains(strings.ToLower(err.Error()), "forbidden"):
		return "", nil,
			fmt.Errorf("it cannot be asked, for want of the right to create pods/portforward in namespace %s "+
				"(rule: {apiGroups: [\"\"], resources: [pods/portforward], verbs: [create]})", l.namespace)
	case err != nil:
		return "", nil, fmt.Errorf("it cannot be reached (%s)", strings.Join(strings.Fields(err.Error()), " "))
	}
	return address, stop, nil
}

// get sends a request to a pod. The caller has to close the answer.
func (with reaching) get(ctx context.Context, address, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil,
			fmt.Errorf("it does not answer on port %d: it may be a version without a read API, or run with another "+
				"--read-port", with.port)
	}
	return answer, nil
}
