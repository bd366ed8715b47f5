package cloud_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/providertest"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
)

// ground is a cloud with a clock that stands still until it is moved.
type ground struct {
	cloud *cloud.Cloud
	clock time.Time
}

func (g *ground) ClassName() string         { return "default" }
func (g *ground) NotReadyClassName() string { return "broken" }
func (g *ground) Machines() int             { return len(g.cloud.Machines()) }
func (g *ground) Settle(*testing.T)         { g.clock = g.clock.Add(time.Hour) }

// Interrupt gives the usual two minutes.
func (g *ground) Interrupt(t *testing.T, providerID string) {
	t.Helper()
	for _, m := range g.cloud.Machines() {
		if m.ProviderID == providerID {
			g.cloud.Interrupt(m, g.clock.Add(2*time.Minute))
		}
	}
}

// BootOf counts the starts of a machine.
func (g *ground) BootOf(t *testing.T, providerID string) string {
	t.Helper()
	for _, m := range g.cloud.Machines() {
		if m.ProviderID == providerID {
			return fmt.Sprint(m.Boots)
		}
	}
	t.Fatalf("there is no machine %s", providerID)
	return ""
}

func class(name string) (*kwokv1alpha1.KWOKNodeClass, error) {
	found := &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	switch name {
	case "default":
		return found, nil
	case "broken":
		found.Status.Conditions = []karpenterv1.Condition{
			{Type: karpenterv1.ConditionTypeReady, Status: metav1.ConditionFalse, Reason: "SubnetsNotFound"},
		}
		return found, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "kwoknodeclasses"}, name)
}

// X-05, P-50: the simulated cloud keeps the contract of every provider.
func TestContract(t *testing.T) {
	t.Parallel()
	offers, err := cloud.NewOffers(cloud.NothingStated)
	if err != nil {
		t.Fatal(err)
	}
	for name, fate := range map[string]cloud.Fate{"at once": {}, "slowly": {Boot: time.Minute, End: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, func(*testing.T) (provider.Provider, providertest.Harness) {
				g := &ground{clock: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
				g.cloud = cloud.New(cloud.Config{
					Offers: offers, Now: func() time.Time { return g.clock }, Class: class,
					Fate: func() cloud.Fate { return fate },
				})
				direct := func(_ context.Context, _, _ string, do func() error) error { return do() }
				return g.cloud.NewProvider(direct), g
			})
		})
	}
}
