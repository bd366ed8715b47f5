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

// API is what a keeper calls; *ec2.Client has it.
type API interface {
	CreateLaunchTemplate(ctx context.Context, in *ec2.CreateLaunchTemplateInput, options ...func(*ec2.Options)) (
		*ec2.CreateLaunchTemplateOutput, error)
	DescribeLaunchTemplates(ctx context.Context, in *ec2.DescribeLaunchTemplatesInput, options ...func(*ec2.Options)) (
		*ec2.DescribeLaunchTemplatesOutput, error)
	DeleteLaunchTemplate(ctx context.Context, in *ec2.DeleteLaunchTemplateInput, options ...func(*ec2.Options)) (
		*ec2.DeleteLaunchTemplateOutput, error)
}

// How long a template may be without a launch before [Keeper.Collect] should delete it, and before it is deleted when
// the account has as many as EC2 allows (E-56).
const (
	UnusedFor       = time.Hour
	unusedAtTheMost = 10 * time.Minute
)

// Codes of EC2 that mean something here and nowhere else.
const (
	codeExists = "InvalidLaunchTemplateName.AlreadyExistsException"
	codeLimit  = "MaxTemplateLimitExceeded"
)

// Keeper makes launch templates and deletes those that nobody uses. What it remembers is which templates there are and
// when a launch last used each: it is lost with the process, which costs a call for each template. Safe for concurrent
// use. The lock is never held across a call.
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

// known is a template that this process has to do with.
type known struct {
	exists  bool
	used    time.Time // by a launch
	deleted string    // id of the last one of this name that this process has deleted
	// busy is a call under way that makes or deletes it; nil when there is none. Who wants the template waits.
	busy *busy
}

type busy struct {
	done   chan struct{} // closed once err is set
	making bool
	err    error
}

// NewKeeper returns a keeper of a cluster's templates. Its calls are made with ctx: it ends with the process, not with
// a caller.
func NewKeeper(ctx context.Context, api API, clock timer.Clock, cluster string) *Keeper {
	return &Keeper{ctx: ctx, api: api, clock: clock, cluster: cluster, started: clock.Now(),
		known: map[string]*known{}}
}

// Ensure makes a template unless this process knows that it is there, and takes in that a launch uses it (E-30). in is
// what [Content] returned; it is not changed. Callers who want the same template share one call. A caller whose
// context ends gets the context's error, and the call goes on. Other errors are the call's: package refusal sorts
// them.
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
		// It was being deleted. It is made again in the next turn.
	}
}

// use notes that a launch uses a template. It returns what has to be waited for; nil when the template is there.
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
	own := *in // the SDK writes a token into what it is given
	making := t.busy
	timer.Go(k.clock, func() { k.create(&own, making) })
	return making
}

// create makes a template and tells those who wait.
func (k *Keeper) create(in *ec2.CreateLaunchTemplateInput, b *busy) {
	name := aws.ToString(in.LaunchTemplateName)
	err := k.callCreate(*in)
	// Room that was made for one may be taken by another, who did not have to wait: then there is more to come.
	for more := true; more && refusal.Of(err).Code == codeLimit; {
		more = k.makeRoom()
		err = k.callCreate(*in)
	}
	if err != nil {
		b.err = fmt.Errorf("making launch template %s: %w", name, err)
	}
	k.settle(name, b, err == nil)
}

// callCreate makes a template; that it is there already is as good, since its name is its content.
func (k *Keeper) callCreate(in ec2.CreateLaunchTemplateInput) error {
	_, err := k.api.CreateLaunchTemplate(k.ctx, &in)
	if refusal.Of(err).Code == codeExists {
		return nil
	}
	return err
}

// settle ends a call about a template.
func (k *Keeper) settle(name string, b *busy, exists bool) {
	k.mu.Lock()
	t := k.known[name]
	t.exists, t.busy = exists, nil
	k.mu.Unlock()
	close(b.done)
}

// Forget takes in that EC2 does not know a template: the next launch makes it again.
func (k *Keeper) Forget(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.known[name]; t != nil {
		t.exists = false
	}
}

// sweep is a collection for lack of room, which several templates may wait for.
type sweep struct {
	room chan struct{} // has one for each deletion that nobody has used yet; closed at the end
}

// makeRoom begins to delete what no launch used for ten minutes, unless that is going on, and returns once there is
// room for one more template, or all that can be deleted is: then more is false. The collection goes on by itself,
// since the next template needs room, too.
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

// run collects for lack of room. What goes wrong is told by the next refusal to make a template, and by the next
// regular collection.
func (k *Keeper) run(s *sweep) {
	_, _ = k.collect(k.ctx, k.clock.Now(), unusedAtTheMost, func() { s.room <- struct{}{} })
	k.mu.Lock()
	k.sweep = nil
	k.mu.Unlock()
	close(s.room)
}
