package plug

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/class"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

const (
	// trialHolds is how long a dry run counts while its class does not change (E-62).
	trialHolds = 30 * time.Minute
	// refusedHolds is the same for a refused one: whoever fixes a role should not wait for half an hour.
	refusedHolds = 5 * time.Minute
	// untoldHolds is after what time to repeat a dry run without a result.
	untoldHolds = time.Minute
	// anyPool stands for the pool of a class that no pool refers to yet.
	anyPool = "default"
)

// trials has the results of classes' dry runs, by the class's UID.
type trials map[types.UID]trial

type trial struct {
	of      [32]byte // what was tried
	like    [32]byte // the same, whatever the instance profile
	at      time.Time
	until   time.Time
	problem *class.Problem // nil when EC2 would launch, or could not tell
}

// forget drops classes that are gone.
func (t trials) forget(list []awsv1.EC2NodeClass) {
	for uid := range t {
		if !slices.ContainsFunc(list, func(c awsv1.EC2NodeClass) bool { return c.UID == uid }) {
			delete(t, uid)
		}
	}
}

// judge returns the problem of launching with a class, nil for none, and when to ask again. It makes a dry run if the
// class or its resolution has changed, and after half an hour. If another process found the class fine, by its status,
// that counts for a while: so a start costs no calls. accepted means that EC2 has just accepted the class as it is.
func (t trials) judge(
	ctx context.Context, k *classes, c *connection, each *awsv1.EC2NodeClass, status awsv1.EC2NodeClassStatus,
	found []karpenterv1.Condition,
) (problem *class.Problem, again time.Duration, accepted bool) {
	waits := propagating(found)
	for _, each := range found {
		summary := each.Type == karpenterv1.ConditionTypeReady ||
			each.Type == karpenterv1.ConditionTypeValidationSucceeded
		if each.Status != metav1.ConditionTrue && !summary &&
			each.Type != resolve.CapacityReservationsReady && each.Reason != resolve.Propagating {
			return nil, untoldHolds, false // nothing could be launched, and that was reported already
		}
	}
	now, of := k.deps.Now(), printOf(each, status)
	known, tried := t[each.UID]
	if !tried && of == printOf(each, each.Status) && valid(each) {
		known, tried = trial{of: of, until: now.Add(someTime(each.UID))}, true
		t[each.UID] = known
	}
	denied, refused := c.machines.Denied(each)
	news := refused && known.problem == nil && (known.at.Before(denied) || now.Sub(known.at) >= refusedHolds)
	if tried && known.of == of && now.Before(known.until) && !news {
		return known.problem, known.until.Sub(now), false
	}
	like := likeOf(each, status)
	if tried && known.of == of && known.problem == nil && !news {
		// One dry run is enough for classes that were fine and differ only in their profiles.
		for _, other := range t {
			if other.like == like && other.problem == nil && now.Before(other.until.Add(-trialHolds/2)) {
				known.like, known.at, known.until = like, other.at, other.until
				t[each.UID] = known
				return nil, known.until.Sub(now), false
			}
		}
	}
	candidate := each.DeepCopy()
	candidate.Status, candidate.ResourceVersion = status, "" // a future state that is not stored
	result := c.machines.Try(ctx, candidate, k.poolOf(ctx, each.Name))
	next := trial{of: of, like: like, at: now, until: now.Add(trialHolds)}
	switch {
	case result.Untold != nil || waits && result.Reason == ec2.ReasonDryRun:
		k.deps.Log.V(1).Info("a dry run told nothing", "nodeClass", each.Name, "reason", result.Untold)
		next.until = now.Add(untoldHolds)
		if tried && known.of == of {
			next.problem = known.problem
		}
		if waits {
			next.until = now.Add(5 * time.Second)
		}
	case result.Reason != "":
		next.until = now.Add(refusedHolds)
		next.problem = &class.Problem{Reason: result.Reason, Message: result.Message}
	default:
		accepted = true
		if refused && known.problem != nil { // a dry run cannot clear what a dry run never saw
			c.machines.Allowed(each.UID)
		}
	}
	t[each.UID] = next
	return next.problem, next.until.Sub(now), accepted
}

// valid reports whether the status says that the current class is fine.
func valid(each *awsv1.EC2NodeClass) bool {
	c, found := condition.Get(each.Status.Conditions, karpenterv1.ConditionTypeValidationSucceeded)
	return found && c.Status == metav1.ConditionTrue && c.ObservedGeneration == each.Generation
}

// printOf returns a hash that is equal for equal launches: of a class's spec and what it resolves to, in any order of
// subnets.
func printOf(each *awsv1.EC2NodeClass, status awsv1.EC2NodeClassStatus) [32]byte {
	status = *status.DeepCopy()
	status.Conditions = nil
	slices.SortFunc(status.Subnets, func(a, b awsv1.Subnet) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	text, err := json.Marshal(struct {
		Spec   awsv1.EC2NodeClassSpec
		Status awsv1.EC2NodeClassStatus
	}{each.Spec, status})
	if err != nil {
		return [32]byte{}
	}
	return sha256.Sum256(text)
}

// likeOf is printOf without the instance profile, which differs between classes of one role.
func likeOf(each *awsv1.EC2NodeClass, status awsv1.EC2NodeClassStatus) [32]byte {
	status = *status.DeepCopy()
	status.InstanceProfile = ""
	return printOf(each, status)
}

// someTime spreads the dry runs after a start over time, by the class's UID.
func someTime(uid types.UID) time.Duration {
	sum := sha256.Sum256([]byte(uid))
	return trialHolds * time.Duration(128+int(sum[0])/2) / 256
}

// poolOf returns the first pool that refers to a class.
func (k *classes) poolOf(ctx context.Context, name string) string {
	pools, err := k.poolsOf(ctx, name)
	if err != nil || len(pools) == 0 {
		return anyPool
	}
	return pools[0].Name
}
