package template

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// API has the calls of a keeper; *ec2.Client implements it.
type API interface {
	CreateLaunchTemplate(ctx context.Context, in *ec2.CreateLaunchTemplateInput, options ...func(*ec2.Options)) (
		*ec2.CreateLaunchTemplateOutput, error)
	DescribeLaunchTemplates(ctx context.Context, in *ec2.DescribeLaunchTemplatesInput, options ...func(*ec2.Options)) (
		*ec2.DescribeLaunchTemplatesOutput, error)
	DeleteLaunchTemplate(ctx context.Context, in *ec2.DeleteLaunchTemplateInput, options ...func(*ec2.Options)) (
		*ec2.DeleteLaunchTemplateOutput, error)
}

// How long a template must be unused before [Keeper.Collect] should delete it, and before it is deleted to make room
// when the account has as many as EC2 allows (E-56).
const (
	UnusedFor       = time.Hour
	unusedAtTheMost = 10 * time.Minute
)

// Codes of EC2 that only matter here.
const (
	codeExists = "InvalidLaunchTemplateName.AlreadyExistsException"
	codeLimit  = "MaxTemplateLimitExceeded"
)

// Keeper creates launch templates and deletes unused ones. It remembers which templates exist and when a launch last
// used each. A restart loses that, which costs a call for each template. Safe for concurrent use. The lock is never
// held across a call.
type Keeper struct {
	ctx     context.Context
	api     API
	clock   timer.Clock
	cluster string
	started time.Time

	mu         sync.Mutex
	known      map[string]*known // by name
	nextDelete time.Time
	sweep      *sweep // under way for lack of room; nil when none is
}

// known is what this process knows of a template.
type known struct {
	exists  bool
	used    time.Time // by a launch
	deleted string    // id of the last one of this name that this process has deleted
	// busy is a call under way that creates or deletes it; nil when there is none. Whoever wants the template waits.
	busy *busy
}

type busy struct {
	done   chan struct{} // closed once err is set
	making bool
	err    error
}

// NewKeeper returns a keeper of a cluster's templates. Its calls use ctx, which ends with the process, not with a
// caller.
func NewKeeper(ctx context.Context, api API, clock timer.Clock, cluster string) *Keeper {
	return &Keeper{ctx: ctx, api: api, clock: clock, cluster: cluster, started: clock.Now(),
		known: map[string]*known{}}
}

// Ensure creates a template unless this process knows that it exists, and notes that a launch uses it (E-30). in is
// the result of [Content]; it is not changed. Callers who want the same template share one call. If ctx ends, the
// caller gets its error and the call goes on. Other errors come from the call: package refusal classifies them.
func (k *Keeper) Ensure(ctx context.Context, in *ec2.CreateLaunchTemplateInput) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		wait := k.use(in)
		if wait == nil {
			return nil
		}
		if err := timer.Await(ctx, k.clock, wait.done); err != nil {
			return err
		}
		if wait.making {
			return wait.err
		}
		// It was being deleted. The next turn creates it again.
	}
}

// use notes that a launch uses a template. It returns the call to wait for; nil when the template exists.
func (k *Keeper) use(in *ec2.CreateLaunchTemplateInput) *busy {
	name := aws.ToString(in.LaunchTemplateName)
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.known[name]
	if t == nil {
		t = &known{}
		k.known[name] = t
	}
	t.used = k.clock.Now()
	if t.busy != nil {
		return t.busy
	}
	if t.exists {
		return nil
	}
	t.busy = &busy{done: make(chan struct{}), making: true}
	own := *in // the SDK writes a token into its input
	making := t.busy
	timer.Go(k.clock, func() { k.create(&own, making) })
	return making
}

// create creates a template and releases the waiters.
func (k *Keeper) create(in *ec2.CreateLaunchTemplateInput, b *busy) {
	name := aws.ToString(in.LaunchTemplateName)
	err := k.callCreate(*in)
	// Another caller that did not wait may take the new room. Then try again while there is more.
	for more := true; more && refusal.Of(err).Code == codeLimit; {
		more = k.makeRoom()
		err = k.callCreate(*in)
	}
	if err != nil {
		b.err = fmt.Errorf("making launch template %s: %w", name, err)
	}
	k.settle(name, b, err == nil)
}

// callCreate creates a template. If it exists already that is fine, since its name is a hash of its content.
func (k *Keeper) callCreate(in ec2.CreateLaunchTemplateInput) error {
	_, err := k.api.CreateLaunchTemplate(k.ctx, &in)
	if refusal.Of(err).Code == codeExists {
		return nil
	}
	return err
}

// settle notes the end of a call about a template.
func (k *Keeper) settle(name string, b *busy, exists bool) {
	k.mu.Lock()
	t := k.known[name]
	t.exists, t.busy = exists, nil
	k.mu.Unlock()
	close(b.done)
}

// Forget notes that EC2 does not know a template: the next launch creates it again.
func (k *Keeper) Forget(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.known[name]; t != nil {
		t.exists = false
	}
}

// sweep is a collection to make room. Several templates may wait for it.
type sweep struct {
	room chan struct{} // has an entry for each unused deletion; closed at the end
}

// makeRoom starts to delete templates unused for ten minutes, unless that is going on. It returns once there is room
// for one more template, or with more false when nothing is left to delete. The collection continues in the
// background, since the next template needs room, too.
func (k *Keeper) makeRoom() (more bool) {
	k.mu.Lock()
	s := k.sweep
	if s == nil {
		s = &sweep{room: make(chan struct{}, maxPages*pageSize)}
		k.sweep = s
		go k.run(s)
	}
	k.mu.Unlock()
	_, more = <-s.room
	return more
}

// run collects to make room. Failures will show in the next refused template, and in the next regular collection.
func (k *Keeper) run(s *sweep) {
	_, _ = k.collect(k.ctx, k.clock.Now(), unusedAtTheMost, func() { s.room <- struct{}{} })
	k.mu.Lock()
	k.sweep = nil
	k.mu.Unlock()
	close(s.room)
}
