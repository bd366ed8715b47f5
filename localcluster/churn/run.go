package churn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// judging is how often the judge looks.
const judging = time.Second

// Report is the result of a seed.
type Report struct {
	Seed     uint64
	Pods     int // feasible pods that waited
	Launches int
	Barren   []string // nodes that were launched and removed without having held a pod
	Worst    string
	Took     time.Duration
	Machine  time.Duration
	Faults   []string
	Dump     string // directory with the state of the cluster; empty: nothing was wrong
}

// String is the report on one line.
func (r Report) String() string {
	verdict := "good"
	if len(r.Faults) > 0 {
		verdict = fmt.Sprintf("%d FAULTS", len(r.Faults))
	}
	return fmt.Sprintf(
		"seed %d: %s; %d pods waited and were feasible, longest %s; %d nodes launched, %d for nothing; "+
			"%.0f s (%.0f s of machine time)",
		r.Seed, verdict, r.Pods, r.Worst, r.Launches, len(r.Barren), r.Took.Seconds(), r.Machine.Seconds())
}

// run is a running seed.
type run struct {
	*Town
	script Script
	hands  hands
	judge  *judge
	done   []string // steps that were done, with the time
	began  time.Time
}

// Run runs the script of a seed. An error means that the harness failed; Joiner's faults are in the report. After a
// fault the town cannot be used for another seed.
func (t *Town) Run(ctx context.Context, seed uint64, length time.Duration) (Report, error) {
	t.view.forget()
	r := &run{Town: t, script: Draw(seed, length), began: time.Now()}
	r.hands = hands{client: t.Client, view: t.view, prefix: r.script.Prefix, kill: t.kill}
	r.judge = newJudge(t.view, t.clock, t.could, t.down.Load)
	machine := t.clock.Now()
	err := r.live(ctx)
	report := Report{Seed: seed, Pods: r.judge.asked, Took: time.Since(r.began), Machine: t.clock.Now() - machine,
		Faults: r.judge.faults, Worst: "none"}
	launches, barren := r.judge.launches()
	report.Launches, report.Barren = launches, slices.Sorted(maps.Values(barren))
	if worst := r.judge.worst; worst.feasible > 0 {
		report.Worst = fmt.Sprintf("%.0f s (%s)", worst.feasible.Seconds(), worst.pod)
	}
	if len(report.Faults) > 0 || err != nil {
		var dumped error
		report.Dump, dumped = r.dump(context.WithoutCancel(ctx), report)
		err = errors.Join(err, dumped)
	}
	return report, err
}

// live runs the parts of the script one after another, until a fault.
func (r *run) live(ctx context.Context) error {
	for _, part := range []func(context.Context) error{r.settle, r.churn, r.calm, r.end, r.leave} {
		if err := part(ctx); err != nil || r.judge.over {
			return err
		}
	}
	return nil
}

// churn executes the steps in time, and judges meanwhile.
func (r *run) churn(ctx context.Context) error {
	steps := r.script.Steps
	for !r.judge.over {
		for len(steps) > 0 && time.Since(r.began) >= steps[0].At {
			if err := r.step(ctx, steps[0]); err != nil {
				return err
			}
			steps = steps[1:]
		}
		if len(steps) == 0 {
			return nil
		}
		if err := r.look(ctx, time.Until(r.began.Add(steps[0].At))); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) step(ctx context.Context, step Step) error {
	r.done = append(r.done, fmt.Sprintf("%6.1fs %s", time.Since(r.began).Seconds(), step))
	if err := r.hands.do(ctx, step); err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

// look judges, and then waits until the next look is due, or at most atMost.
func (r *run) look(ctx context.Context, atMost time.Duration) error {
	if err := r.alive(); err != nil {
		r.judge.fault("alive", "%v", err)
		return nil
	}
	lines, err := r.log.trouble()
	if err != nil {
		return err
	}
	for _, line := range lines {
		r.judge.remark("log "+line.about, "joiner's log: %s", line.text)
	}
	if err := r.judge.look(ctx); err != nil {
		return err
	}
	r.judge.neighbours(r.script.Neighbours)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(max(0, min(judging, atMost))):
		return nil
	}
}

// calm removes budgets and pauses; after that everything has to come to rest.
func (r *run) calm(ctx context.Context) error {
	for _, step := range r.script.Calm {
		if err := r.step(ctx, step); err != nil {
			return err
		}
	}
	return r.until(ctx, mostUnrest, "the cluster does not come to rest",
		func() (bool, string) { return r.judge.rests(r.clock.Now()) })
}

// end removes the workloads and then the pools; nothing may be left.
func (r *run) end(ctx context.Context) error {
	for _, step := range r.script.End {
		if err := r.step(ctx, step); err != nil {
			return err
		}
	}
	err := r.until(ctx, mostEnd, "nodes are left without any pod", func() (bool, string) {
		return r.nothing(len(r.view.claims()), "NodeClaims", len(r.view.nodes()), "nodes", r.ownPods(), "pods")
	})
	if err != nil || r.judge.over {
		return err
	}
	for _, step := range r.script.Gone {
		if err := r.step(ctx, step); err != nil {
			return err
		}
	}
	if err := r.until(ctx, mostEnd, "something is left at the end", func() (bool, string) {
		return r.nothing(len(r.view.pools()), "NodePools", len(r.view.claims()), "NodeClaims", len(r.view.nodes()),
			"nodes")
	}); err != nil {
		return err
	}
	return r.until(ctx, mostEnd, "machines are left at the end", func() (bool, string) {
		var machines corev1.ConfigMapList
		if err := r.Client.List(ctx, &machines, client.HasLabels{bootRecord}); err != nil {
			return false, err.Error()
		}
		return r.nothing(len(machines.Items), "boot records of machines")
	})
}

// bootRecord is the label of the KWOK provider's records of machines whose node has not joined yet.
const bootRecord = "joiner.sh/boot-record"

func (r *run) ownPods() (n int) {
	for _, pod := range r.view.pods() {
		if strings.HasPrefix(pod.Namespace, r.script.Prefix+"-") {
			n++
		}
	}
	return n
}

// nothing takes pairs of a number and what it counts. It reports whether all numbers are 0.
func (r *run) nothing(counts ...any) (bool, string) {
	none, text := true, []string{}
	for i := 0; i < len(counts); i += 2 {
		if n := counts[i].(int); n > 0 {
			none, text = false, append(text, fmt.Sprintf("%d %s", n, counts[i+1]))
		}
	}
	return none, strings.Join(text, ", ")
}

// until judges until done returns true. It is a fault if that takes more than most, in machine time.
func (r *run) until(ctx context.Context, most time.Duration, fault string, done func() (bool, string)) error {
	begin := r.clock.Now()
	for !r.judge.over {
		is, saw := done()
		if is {
			return nil
		}
		if took := r.clock.Now() - begin; took > most {
			r.judge.fault(fault, "%s after %.0f s of machine time: %s", fault, took.Seconds(), saw)
			return nil
		}
		if err := r.look(ctx, judging); err != nil {
			return err
		}
	}
	return nil
}
