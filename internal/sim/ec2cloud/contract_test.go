package ec2cloud

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/claimstest"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
	"github.com/joiner-autoscaler/joiner/internal/provider/providertest"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
)

// impatient is a clock on which what is to be called later is called soon.
type impatient struct{ *timer.Fake }

func (impatient) AfterFunc(_ time.Duration, f func()) func() {
	return timer.Real{}.AfterFunc(time.Millisecond, f)
}

// held is an account as the contract's suite holds it. It stands for the API server, too.
type held struct {
	claimstest.Store
	account *Account
	clock   impatient
}

func (h *held) ClassName() string         { return "default" }
func (h *held) NotReadyClassName() string { return "broken" }
func (h *held) Machines() int             { return len(h.account.Machines()) }
func (h *held) Settle(*testing.T)         { h.clock.Advance(3 * time.Minute) }

func (h *held) Interrupt(_ *testing.T, providerID string) {
	for _, m := range h.account.Machines() {
		if m.ProviderID == providerID {
			h.account.Interrupt(m, h.clock.Now())
		}
	}
}

func (h *held) NodeClass(_ context.Context, name string) (*awsv1.EC2NodeClass, error) {
	class := h.account.Class()
	switch name {
	case "default":
	case "broken":
		class.Name, class.Status.Conditions[0].Status, class.Status.Conditions[0].Reason = name, "False",
			"SubnetsNotFound"
	default:
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: awsv1.Group, Resource: "ec2nodeclasses"}, name)
	}
	return class, nil
}

// X-05, P-50: the provider keeps the contract also over the wire without sockets.
func TestContract(t *testing.T) {
	t.Parallel()
	ground, err := NewGround()
	if err != nil {
		t.Fatal(err)
	}
	providertest.Run(t, func(t *testing.T) (provider.Provider, providertest.Harness) {
		h := &held{clock: impatient{timer.NewFake(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))}}
		h.account, err = ground.Open(Config{Now: h.clock.Now, Warns: true,
			Unknown: func(text string) { t.Errorf("ec2test: %s", text) }})
		if err != nil {
			t.Fatal(err)
		}
		p, err := h.account.NewProvider(Process{Name: "test", Clock: h.clock, Cluster: h, Send: direct})
		if err != nil {
			t.Fatal(err)
		}
		return p, h
	})
}

// What goes wrong in EC2 is what the weather says, until it is fair again.
func TestWeather(t *testing.T) {
	t.Parallel()
	ground, err := NewGround()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	account, err := ground.Open(Config{Now: func() time.Time { return start }})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []Weather{{Tokens: "perhaps"}, {LateShare: 2}} {
		if err := account.SetWeather(w); err == nil {
			t.Errorf("%+v is taken", w)
		}
	}
	bad := Weather{Tokens: "ignore", LateShare: 0.5, LateMost: time.Minute, Rate: 1, VCPUs: 4, Room: 1, Addresses: 2}
	if err := account.SetWeather(bad); err != nil || account.Weather() != bad {
		t.Errorf("weather %+v, error %v", account.Weather(), err)
	}
	if n := account.endpoint.FreeAddresses(account.class.Status.Subnets[0].ID); n != 2 {
		t.Errorf("a subnet has %d addresses, want 2", n)
	}
	if err := account.RunOut(cloud.AllMarkets); err != nil || account.Out() != cloud.AllMarkets {
		t.Errorf("%s has run out, error %v", account.Out(), err)
	}
	if err := account.SetWeather(Fair()); err != nil {
		t.Fatal(err)
	}
	if n := account.endpoint.FreeAddresses(account.class.Status.Subnets[0].ID); n != plenty {
		t.Errorf("a subnet has %d addresses in fair weather, want %d", n, plenty)
	}
}
