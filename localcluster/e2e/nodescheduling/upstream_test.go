package nodescheduling

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	openshiftapi "github.com/joiner-autoscaler/joiner/upstream/openshift-api"
)

// on a real API server, the field proposed to openshift/api does what its own test files say, with the feature
// gate and without it.
func TestA38_TheProposedFieldPassesItsSuite(t *testing.T) {
	g := beginWith(t, placingtest.Options{Door: placingtest.Plugin, Components: []cluster.Component{cluster.Etcd,
		cluster.APIServer}})
	suites, err := openshiftapi.Suites()
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range suites {
		definition := openshiftapi.Enabled
		if suite.Off() {
			definition = openshiftapi.Disabled
		}
		manifest, err := definition()
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Apply(t.Context(), string(manifest)); err != nil {
			t.Fatal(err)
		}
		g.must(t, "wait", "--for=condition=Established", "--timeout=60s", "crd/"+suite.CRDName)
		s := g.schedulers(t)
		for _, test := range suite.Tests.OnCreate {
			s.check(t, suite.Name, test, test.Initial, s.create(t, test.Initial))
		}
		for _, test := range suite.Tests.OnUpdate {
			if err := s.create(t, test.Initial); err != nil {
				t.Errorf("%s: %s: %v", suite.Name, test.Name, err)
				continue
			}
			s.check(t, suite.Name, test, test.Updated, s.update(t, test.Updated))
		}
		g.must(t, "delete", "crd", suite.CRDName, "--wait=true", "--timeout=60s")
	}
}

// schedulers writes the only Scheduler.
type schedulers struct{ dynamic.ResourceInterface }

func (g guarded) schedulers(t *testing.T) schedulers {
	t.Helper()
	config, err := g.Cluster.RESTConfig("admin")
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return schedulers{client.Resource(configv1.GroupVersion().WithResource("schedulers"))}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	object.SetName(configv1.SchedulerName)
	return object
}

// create replaces the object by a new one. A kind may not be served yet just after its definition.
func (s schedulers) create(t *testing.T, text string) error {
	t.Helper()
	if err := s.Delete(t.Context(), configv1.SchedulerName, metav1.DeleteOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		return err
	}
	var answer error
	err := wait.PollUntilContextTimeout(t.Context(), poll, placingtest.Within, true,
		func(ctx context.Context) (bool, error) {
			_, answer = s.Create(ctx, parse(t, text), metav1.CreateOptions{})
			return !apierrors.IsNotFound(answer), nil
		})
	if err != nil {
		return fmt.Errorf("the kind is not served: %w: %w", err, answer)
	}
	return answer
}

func (s schedulers) update(t *testing.T, text string) error {
	t.Helper()
	stored, err := s.Get(t.Context(), configv1.SchedulerName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	wanted := parse(t, text)
	wanted.SetResourceVersion(stored.GetResourceVersion())
	_, err = s.Update(t.Context(), wanted, metav1.UpdateOptions{})
	return err
}

// check compares the result of a write with what the test says.
func (s schedulers) check(t *testing.T, suite string, test openshiftapi.Test, written string, got error) {
	t.Helper()
	if test.ExpectedError != "" {
		if got == nil || !strings.Contains(got.Error(), test.ExpectedError) {
			t.Errorf("%s: %s: %v, want %s", suite, test.Name, got, test.ExpectedError)
		}
		return
	}
	if got != nil {
		t.Errorf("%s: %s: %v\n%s", suite, test.Name, got, written)
		return
	}
	stored, err := s.Get(t.Context(), configv1.SchedulerName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := parse(t, test.Expected); !reflect.DeepEqual(stored.Object["spec"], want.Object["spec"]) {
		t.Errorf("%s: %s: stored %v, want %v", suite, test.Name, stored.Object["spec"], want.Object["spec"])
	}
}
