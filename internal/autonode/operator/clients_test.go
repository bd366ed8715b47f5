package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// far is a management cluster that is reached by HTTP: it answers the lists that R41 and A-32 allow, and nothing else.
type far struct {
	*httptest.Server
	asked []string // path and query of each request
}

func newFar(t *testing.T) *far {
	t.Helper()
	f := &far{}
	policy := policyOf(3)
	policy.TypeMeta = metav1.TypeMeta{APIVersion: hypershiftv1beta1.GroupVersion().String(), Kind: "AutoNodePolicy"}
	secret := corev1.Secret{Data: map[string][]byte{"value": []byte("boot")}, ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "s", Annotations: map[string]string{
			"hypershift.openshift.io/nodePool": "clusters/big-karpenter",
		}}}
	answers := map[string]any{
		"/apis/" + hypershiftv1beta1.GroupVersion().String() + "/namespaces/" + namespace +
			"/autonodepolicies": hypershiftv1beta1.AutoNodePolicyList{
			TypeMeta: metav1.TypeMeta{APIVersion: policy.APIVersion, Kind: "AutoNodePolicyList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []hypershiftv1beta1.AutoNodePolicy{*policy},
		},
		"/api/v1/namespaces/" + namespace + "/secrets": corev1.SecretList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}, Items: []corev1.Secret{secret},
		},
		"/apis/hypershift.openshift.io/v1beta1/namespaces/" + namespace + "/hostedcontrolplanes": map[string]any{
			"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlaneList",
			"metadata": map[string]any{"resourceVersion": "9"}, "items": []any{map[string]any{
				"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
				"metadata": map[string]any{"name": "one"}}},
		},
	}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, _ := url.QueryUnescape(r.URL.RawQuery)
		f.asked = append(f.asked, r.URL.Path+"?"+query)
		answer, served := answers[r.URL.Path]
		if !served {
			http.NotFound(w, r)
			return
		}
		if r.URL.Query().Get("watch") != "" {
			answer = metav1.WatchEvent{Type: "MODIFIED"}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

// R41, A-32: the management cluster is asked for the policy of one namespace, its Secrets and its HostedControlPlane,
// and for nothing else: not even which kinds it serves.
func TestWhatTheManagementClusterIsAskedFor(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	management, err := operator.NewManagementClient(&rest.Config{Host: f.URL}, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.asked) != 0 || management.Namespace() != namespace {
		t.Errorf("asked for %v before it was used; namespace %s", f.asked, management.Namespace())
	}
	policy, version, err := management.Policy(t.Context())
	if err != nil || policy == nil || policy.Generation != 3 || version != "7" {
		t.Errorf("policy %v at version %s, error %v", policy, version, err)
	}
	watch, err := management.Watch(t.Context(), version, 60)
	if err != nil {
		t.Fatal(err)
	}
	watch.Stop()
	boot, err := operator.BootstrapFromSecrets(management, time.Now)(t.Context(), "big", "")
	if err != nil || boot == nil || boot.UserData != "boot" {
		t.Errorf("nodes start with %v, error %v", boot, err)
	}
	planes, version, err := management.HostedControlPlanes(t.Context())
	if err != nil || len(planes) != 1 || planes[0].GetName() != "one" || version != "9" {
		t.Errorf("HostedControlPlanes %v at version %s, error %v", planes, version, err)
	}
	policies := "/apis/karpenter.hypershift.openshift.io/v1beta1/namespaces/hcp-a/autonodepolicies?"
	want := []string{
		policies + "fieldSelector=metadata.name=default",
		policies + "fieldSelector=metadata.name=default&resourceVersion=7&timeoutSeconds=60&watch=true",
		"/api/v1/namespaces/hcp-a/secrets?labelSelector=hypershift.openshift.io/managed-by-karpenter=true",
		"/apis/hypershift.openshift.io/v1beta1/namespaces/hcp-a/hostedcontrolplanes?",
	}
	if !slices.Equal(f.asked, want) {
		t.Errorf("asked for\n%s\nwant\n%s", strings.Join(f.asked, "\n"), strings.Join(want, "\n"))
	}
}

// G15: if the management cluster cannot be reached, or does not answer, the error says what was asked.
func TestNoFailureOfTheManagementClusterIsSwallowed(t *testing.T) {
	t.Parallel()
	if _, err := operator.NewManagementClient(&rest.Config{Host: "a b://"}, namespace); err == nil ||
		!strings.Contains(err.Error(), "management cluster") {
		t.Errorf("an address that is none gives the error %v", err)
	}
	s := newScene(t, nil, policyOf(1))
	refusing := operator.ManagementClientOf(interceptor.NewClient(s.management, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errForbidden
		},
	}), namespace)
	if policy, _, err := refusing.Policy(t.Context()); !errors.Is(err, errForbidden) || policy != nil ||
		!strings.Contains(err.Error(), "AutoNodePolicy hcp-a/default") {
		t.Errorf("policy %v, error %v", policy, err)
	}
	look := operator.BootstrapFromSecrets(refusing, time.Now)
	if boot, err := look(t.Context(), "big", ""); !errors.Is(err, errForbidden) || boot != nil {
		t.Errorf("nodes start with %v, error %v", boot, err)
	}
}

// Section 4 1.3: a file may say what nodes start with. One that is not there yet is waited for; one that cannot be
// read is told of.
func TestBootstrapComesFromAFile(t *testing.T) {
	t.Parallel()
	amis := []string{"ami-1", "ami-2"}
	broken := errors.New("input/output error")
	for name, c := range map[string]struct {
		failure error
		found   bool
		told    error
	}{"there": {nil, true, nil}, "not there yet": {fs.ErrNotExist, false, nil}, "broken": {broken, false, broken}} {
		look := operator.BootstrapFromFile("/etc/boot", amis, func(path string) ([]byte, error) {
			return []byte("boot of " +
				path), c.failure
		})
		found, err := look(t.Context(), "any", "")
		if !errors.Is(err, c.told) || (err == nil) != (c.told == nil) || (found != nil) != c.found {
			t.Fatalf("%s: found %v, error %v", name, found, err)
		}
		if found != nil && (found.UserData != "boot of /etc/boot" || !slices.Equal(found.AMIs, amis)) {
			t.Errorf("%s: found %v", name, found)
		}
	}
}
