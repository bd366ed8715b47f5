package launcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launcher"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// shared is an API server with claims of one launch; several processes see the same state.
type shared struct{ claims []launchid.Claim }

func (s *shared) Claims(context.Context) ([]launchid.Claim, error) {
	return slices.Clone(s.claims), nil
}

func (*shared) Intend(context.Context, launchid.Claim, launchid.ID, string) error {
	return errors.New("nothing is launched here")
}

func (s *shared) Mark(_ context.Context, mark string,
	which func([]launchid.Claim) []launchid.Claim) ([]launchid.Claim, error) {
	for _, chosen := range which(slices.Clone(s.claims)) {
		i := slices.IndexFunc(s.claims, func(c launchid.Claim) bool { return c.UID == chosen.UID })
		s.claims[i].Dealer = mark
	}
	return slices.Clone(s.claims), nil
}

func (*shared) Of(context.Context, []launchid.ID) ([]launchid.Instance, error) { return nil, nil }

func (*shared) Fleet(context.Context, string, launcher.Ask) (launcher.Answer, error) {
	return launcher.Answer{}, errors.New("nothing is launched here")
}

// E-38, seed 3055 with EC2: a process hands a machine out to a claim that goes. Another one takes over and dies before
// it writes that down. The first one sees the other's mark and takes over again: else nobody ever could write the
// machine on the claim, which would stay for ever, and its machine with it.
func TestWhoIsLeftTakesOverAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		launch := launchid.New([]string{"u1", "u2"}, 0)
		s := &shared{claims: []launchid.Claim{
			{UID: "u1", Name: "a", Launch: launch, Deleting: true},
			{UID: "u2", Name: "b", Launch: launch, ProviderID: "i-2"},
		}}
		machines := []launchid.Instance{
			{ProviderID: "i-1", Launch: launch, Launched: time.Now().Add(-time.Hour)},
			{ProviderID: "i-2", Launch: launch, Launched: time.Now().Add(-time.Hour)},
		}
		first := launcher.New[string](t.Context(), "first", s, timer.Real{}, nil)
		second := launcher.New[string](t.Context(), "second", s, timer.Real{}, nil)
		for _, l := range []*launcher.Launcher[string]{first, second, first} {
			owners, err := l.Whose(t.Context(), machines)
			if err != nil || owners.Claims["i-1"] != "u1" {
				t.Fatalf("owners %+v, error %v; want the machine as the claim's that goes", owners, err)
			}
			if mark := owners.Marks["i-1"]; mark == "" || mark != s.claims[0].Dealer {
				t.Errorf("the machine can be written under mark %q, and the claim bears %q", mark, s.claims[0].Dealer)
			}
		}
	})
}
