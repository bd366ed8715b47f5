package machines_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
)

// E-54, E-61: an end is requested once; after that EC2 is asked for the machine's state whenever the controller asks.
func TestAnEndIsAskedForOnce(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Options{})
	id := a.launch(1, onDemand, ours()...)[0]
	a.Forget()
	asks := 0
	for err := error(nil); err == nil && asks < 99; asks++ {
		if err = a.ms.End(t.Context(), id, time.Time{}, nil); err != nil && !errors.Is(err, provider.ErrNotFound) {
			t.Fatal(err)
		}
		a.Advance(2 * time.Second)
	}
	if counts := a.Counts(); counts["ec2:TerminateInstances"] != 1 || counts["ec2:DescribeInstances"] != asks-1 ||
		asks != 16 {
		t.Errorf(
			"asked %d times until it was gone after 30 s, calls %v; want one end, and a look for each further question",
			asks, counts)
	}
}

// E-61: the states of many machines are read in one call, not one per caller, whether they run or not.
func TestManyEndsAreLookedAtTogether(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Options{})
	ids := a.launch(40, onDemand, ours()...)
	a.Forget()
	gone := atomic.Int32{}
	for range 36 {
		gone.Store(0)
		var group sync.WaitGroup
		for _, id := range ids {
			group.Go(func() {
				if err := a.ms.End(t.Context(), id, time.Time{}, nil); errors.Is(err, provider.ErrNotFound) {
					gone.Add(1)
				} else if err != nil {
					t.Error(err)
				}
				if m, err := a.ms.Get(t.Context(), id, time.Time{}); err == nil &&
					(!m.Ending || m.ProviderID() != id) {
					t.Errorf("%s is %+v, want it to end", id, m)
				}
			})
		}
		group.Wait()
		a.Advance(time.Second)
	}
	if counts := a.Counts(); gone.Load() != 40 || counts["ec2:TerminateInstances"] > 5 ||
		counts["ec2:DescribeInstances"] > 45 {
		t.Errorf("%d of 40 are gone after 36 s, calls %v", gone.Load(), counts)
	}
	a.Forget()
	for _, id := range ids {
		_, _ = a.ms.Get(t.Context(), id, time.Time{})
	}
	if counts := a.Counts(); len(counts) != 0 {
		t.Errorf("calls %v for machines that are known to be gone, want none", counts)
	}
}

// E-54: if EC2 refuses an end while no caller waits, the next caller gets the error, and then it is tried again.
func TestARefusalThatNobodyWaitedFor(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Options{})
	ids := a.launch(2, onDemand, ours()...)
	a.Protect(ids[0][strings.LastIndex(ids[0], "/")+1:])
	leaving := atomic.Bool{}
	leaving.Store(true)
	a.ms = machines.New(t.Context(), machines.Config{EC2: ec2.NewFromConfig(a.Config()), Clock: clock{a.Server},
		Cluster: "c1", Leaving: func() []string {
			if leaving.Load() {
				return ids
			}
			return ids[:1]
		}})
	a.Forget()
	if err := a.ms.End(t.Context(), ids[0], time.Time{}, nil); err != nil ||
		a.Counts()["ec2:TerminateInstances"] != 0 {
		t.Fatalf("while the other one is on its way: error %v, calls %v", err, a.Counts())
	}
	leaving.Store(false)
	a.until("the call", func() bool { return a.Counts()["ec2:TerminateInstances"] > 0 })
	for i := range 2 {
		a.until("the refusal", func() bool {
			err := a.ms.End(t.Context(), ids[0], time.Time{}, nil)
			return err != nil && strings.Contains(err.Error(), "OperationNotPermitted")
		})
		if calls := a.Counts()["ec2:TerminateInstances"]; calls != 1+i {
			t.Errorf("%d calls after it was told %d times", calls, 1+i)
		}
	}
}

// P-40: a machine that is in use at the time of the call does not end; others in the call do. The next request ends
// it.
func TestP40_AMachineInUseIsKept(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Options{})
	ids := a.launch(2, onDemand, ours()...)
	used := atomic.Bool{}
	used.Store(true)
	var group sync.WaitGroup
	for i, inUse := range []func() bool{used.Load, nil} {
		group.Go(func() {
			if err := a.ms.End(t.Context(), ids[i], time.Time{}, inUse); err != nil {
				t.Errorf("End of machine %d: %v", i, err)
			}
		})
	}
	group.Wait()
	for i, want := range []bool{false, true} {
		m, err := a.ms.Get(t.Context(), ids[i], time.Time{})
		if ends := m.Ending || errors.Is(err, provider.ErrNotFound); ends != want {
			t.Errorf("machine %d ends: %t, want %t (%v)", i, ends, want, err)
		}
	}
	used.Store(false)
	if err := a.ms.End(t.Context(), ids[0], time.Time{}, used.Load); err != nil &&
		!errors.Is(err, provider.ErrNotFound) {
		t.Fatal(err)
	}
	if m, err := a.ms.Get(t.Context(), ids[0], time.Time{}); !m.Ending && !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("the machine runs on when it is not in use any more (%v)", err)
	}
}

// until waits for something.
func (a *account) until(what string, is func() bool) {
	a.t.Helper()
	again, late := time.NewTicker(20*time.Millisecond), time.After(time.Minute)
	defer again.Stop()
	for !is() {
		select {
		case <-again.C:
		case <-late:
			a.t.Fatalf("waited a minute for %s: %v", what, a.Counts())
		}
	}
}

// shown is a client of an EC2 that shows instances in a state of the test's.
type shown struct {
	*ec2.Client
	state *ec2types.InstanceStateName
	fails *error
}

func (s shown) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput, options ...func(*ec2.Options)) (
	*ec2.DescribeInstancesOutput, error,
) {
	out, err := s.Client.DescribeInstances(ctx, in, options...)
	if err == nil && *s.fails == nil {
		out.Reservations[0].Instances[0].State.Name = *s.state
		return out, nil
	}
	return nil, errors.Join(err, *s.fails)
}

// E-54: a machine that keeps running although EC2 has accepted its end is ended again, and so is one that takes very
// long; but not because of a late or missing answer.
func TestAnEndIsAskedForAgain(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Options{Shut: time.Hour})
	id := a.launch(1, onDemand, ours()...)[0]
	state, fails := ec2types.InstanceStateNameRunning, error(nil)
	a.ms = machines.New(t.Context(), machines.Config{EC2: shown{ec2.NewFromConfig(a.Config()), &state, &fails},
		Clock: clock{a.Server}, Cluster: "c1"})
	a.Forget()
	for _, step := range []struct {
		after time.Duration
		state ec2types.InstanceStateName
		fails error
		ends  int
	}{
		{0, "running", nil, 1}, {8 * time.Second, "running", nil, 1}, {3 * time.Second, "running", nil, 2},
		{time.Minute, "shutting-down", nil, 2}, {59 * time.Second, "shutting-down", nil, 2},
		{2 * time.Second, "shutting-down", nil, 3},
		{4 * time.Second, "running", errors.New("trouble"), 3}, {0, "shutting-down", nil, 3},
	} {
		a.Advance(step.after)
		state, fails = step.state, step.fails
		err := a.ms.End(t.Context(), id, time.Time{}, nil)
		if got := a.Counts()["ec2:TerminateInstances"]; got != step.ends ||
			fmt.Sprint(err != nil) != fmt.Sprint(step.fails != nil) {
			t.Errorf("%+v: %d ends, error %v", step, got, err)
		}
	}
}
