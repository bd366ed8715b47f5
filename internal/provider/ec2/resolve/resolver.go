package resolve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
)

// EC2 has the calls to EC2.
type EC2 interface {
	DescribeSubnets(context.Context, *ec2.DescribeSubnetsInput,
		...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error)
	DescribeSecurityGroups(context.Context, *ec2.DescribeSecurityGroupsInput, ...func(*ec2.Options)) (
		*ec2.DescribeSecurityGroupsOutput, error)
	DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error)
	DescribeCapacityReservations(context.Context, *ec2.DescribeCapacityReservationsInput, ...func(*ec2.Options)) (
		*ec2.DescribeCapacityReservationsOutput, error)
	DescribePlacementGroups(context.Context, *ec2.DescribePlacementGroupsInput, ...func(*ec2.Options)) (
		*ec2.DescribePlacementGroupsOutput, error)
}

// SSM has the calls to the Systems Manager.
type SSM interface {
	GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
}

// IAM has the calls to IAM.
type IAM interface {
	GetInstanceProfile(context.Context, *iam.GetInstanceProfileInput, ...func(*iam.Options)) (
		*iam.GetInstanceProfileOutput, error)
	CreateInstanceProfile(context.Context, *iam.CreateInstanceProfileInput, ...func(*iam.Options)) (
		*iam.CreateInstanceProfileOutput, error)
	AddRoleToInstanceProfile(context.Context, *iam.AddRoleToInstanceProfileInput, ...func(*iam.Options)) (
		*iam.AddRoleToInstanceProfileOutput, error)
	RemoveRoleFromInstanceProfile(context.Context, *iam.RemoveRoleFromInstanceProfileInput, ...func(*iam.Options)) (
		*iam.RemoveRoleFromInstanceProfileOutput, error)
	ListInstanceProfiles(context.Context, *iam.ListInstanceProfilesInput,
		...func(*iam.Options)) (*iam.ListInstanceProfilesOutput, error)
	DeleteInstanceProfile(context.Context, *iam.DeleteInstanceProfileInput,
		...func(*iam.Options)) (*iam.DeleteInstanceProfileOutput, error)
}

const (
	// patience is the timeout of one question, with all its pages and waiting for its turn.
	patience = 20 * time.Second
	// patienceWithAll is the timeout of all questions of a kind: one hanging service must not stop the others.
	patienceWithAll = time.Minute
)

// leastRefresh is the minimum interval between two equal questions to AWS (E-11, E-59).
const leastRefresh = time.Minute

// Config configures a Resolver.
type Config struct {
	EC2 EC2
	SSM SSM
	// IAM is nil if it cannot be reached, as in an isolated VPC. Then classes must name an instance profile.
	IAM IAM
	Now func() time.Time
	// Cluster and Region are names; both are in names and tags of instance profiles.
	Cluster, Region string
	// SubnetRefresh, SecurityGroupRefresh and AMIRefresh are how long an answer holds. The minimum is a minute; 0
	// means that.
	SubnetRefresh, SecurityGroupRefresh, AMIRefresh time.Duration
}

// Validate returns an error that names what is missing or not allowed.
func (c Config) Validate() error {
	switch {
	case c.EC2 == nil || c.SSM == nil || c.Now == nil:
		return errors.New("resolve: EC2, SSM and Now are needed")
	case c.Cluster == "" || c.Region == "":
		return fmt.Errorf("resolve: cluster is %q and region %q: both are needed", c.Cluster, c.Region)
	}
	for name, d := range map[string]time.Duration{
		"subnet-refresh-interval": c.SubnetRefresh, "security-group-refresh-interval": c.SecurityGroupRefresh,
		"ami-refresh-interval": c.AMIRefresh,
	} {
		if d != 0 && d < leastRefresh {
			return fmt.Errorf("%s is %s: give at least %s", name, d, leastRefresh)
		}
	}
	return nil
}

// Resolver resolves selectors. Its memories are its only state: a new one only has to ask again. Concurrent calls of
// Resolve are allowed, but may ask some questions twice.
type Resolver struct {
	config  Config
	started time.Time

	knownSubnets      *memory[[]subnet.Subnet]
	knownGroups       *memory[[]subnet.Group]
	knownParameters   *memory[string]
	knownImages       *memory[[]image]
	knownReservations *memory[[]Reservation]
	knownPlacements   *memory[[]PlacementGroup]
	knownProfiles     *memory[profile]

	mu       sync.Mutex
	terms    map[string]terms // by UID of the class
	accepted map[string]bool  // instance profiles, by name
}

// New returns a Resolver with empty memories.
func New(config Config) (*Resolver, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	for _, d := range []*time.Duration{&config.SubnetRefresh, &config.SecurityGroupRefresh, &config.AMIRefresh} {
		*d = max(*d, leastRefresh)
	}
	return &Resolver{
		config: config, started: config.Now(), terms: map[string]terms{}, accepted: map[string]bool{},
		knownSubnets: newMemory[[]subnet.Subnet](), knownGroups: newMemory[[]subnet.Group](),
		knownParameters: newMemory[string](), knownImages: newMemory[[]image](),
		knownReservations: newMemory[[]Reservation](), knownPlacements: newMemory[[]PlacementGroup](),
		knownProfiles: newMemory[profile](),
	}, nil
}

func (r *Resolver) now() time.Time { return r.config.Now() }

// Result is the resolution of a class.
type Result struct {
	// Status is the new status of the class, without conditions. Parts that could not be resolved are as before.
	Status awsv1.EC2NodeClassStatus
	// Conditions are those of E-02 that this package decides, in its order, Ready last. Others may add to
	// ValidationSucceeded and Ready. The caller sets ObservedGeneration and times.
	Conditions []karpenterv1.Condition
	// Subnets and Groups are the objects that the terms choose, in the order of the status; nil without an answer in
	// this process.
	Subnets []subnet.Subnet
	Groups  []subnet.Group
	// SubnetsAsked is when the free addresses of Subnets were asked for, for subnet.Free.
	SubnetsAsked time.Time
	// Reservations are those of the status, with their free places at ReservationsAsked.
	Reservations      []Reservation
	ReservationsAsked time.Time
	// Placement is the placement group that the class selects; nil for none.
	Placement *PlacementGroup
	// Snapshots are the sizes of the images' snapshots, in GiB by image and device, as far as known in this process.
	Snapshots map[string]map[string]int64
	// AMIChanges are images of the status that were replaced. Their event is sent once the status is written.
	AMIChanges []AMIChange
	// StaleSince is the time of the oldest answer that could not be refreshed; zero when all are fresh.
	StaleSince time.Time
	// After is when to resolve again.
	After time.Duration
}

// Resolve resolves the selectors of the classes and computes their conditions. The results are by the name of the
// class. It takes all classes at once, so that AWS gets equal questions only once. kubernetes is the version of the
// API server; "" when unknown. The classes are not changed.
func (r *Resolver) Resolve(ctx context.Context, classes []*awsv1.EC2NodeClass, kubernetes string) map[string]Result {
	kubernetes = minor(kubernetes)
	for _, class := range classes {
		r.note(class, r.now())
	}
	for _, ask := range []func(context.Context){
		func(ctx context.Context) { r.subnets().ask(ctx, classes, r.now) },
		func(ctx context.Context) { r.groups().ask(ctx, classes, r.now) },
		func(ctx context.Context) { r.askParameters(ctx, classes, kubernetes) },
		func(ctx context.Context) { r.askImages(ctx, classes, kubernetes) },
		func(ctx context.Context) { r.askReservations(ctx, classes) },
		func(ctx context.Context) { r.askPlacements(ctx, classes) },
		func(ctx context.Context) { r.askProfiles(ctx, classes) },
	} {
		bounded, cancel := context.WithTimeout(ctx, patienceWithAll)
		ask(bounded)
		cancel()
	}
	now := r.now()
	results := map[string]Result{}
	for _, class := range classes {
		results[class.Name] = r.judge(class, kubernetes, now)
	}
	r.forget(now)
	return results
}

// judge computes the result of a class from the memories. It makes no calls.
func (r *Resolver) judge(class *awsv1.EC2NodeClass, kubernetes string, now time.Time) Result {
	into := Result{Status: *class.Status.DeepCopy(), After: leastRefresh}
	into.Status.Conditions = nil
	r.judgeSubnets(class, &into, now)
	r.judgeGroups(class, &into, now)
	r.judgeImages(class, kubernetes, &into, now)
	r.judgeProfile(class, &into, now)
	if len(class.Spec.CapacityReservationSelectorTerms) > 0 {
		r.judgeReservations(class, &into, nil, now)
	} else {
		into.Status.CapacityReservations = nil
	}
	if class.Spec.PlacementGroupSelector != nil {
		r.judgePlacement(class, &into, now)
	}
	into.Conditions = append(into.Conditions, r.valid(class, into))
	into.Conditions = append(into.Conditions, Ready(into.Conditions))
	return into
}

// valid returns ValidationSucceeded as far as this package knows.
func (r *Resolver) valid(class *awsv1.EC2NodeClass, result Result) karpenterv1.Condition {
	const kind = karpenterv1.ConditionTypeValidationSucceeded
	if _, err := minAge(class); err != nil {
		return unmet(kind, AMIMinAgeInvalid, err.Error())
	}
	if text := subnet.Mismatch(result.Subnets, result.Groups); text != "" {
		return unmet(kind, VPCMismatch, text)
	}
	if name := value(class.Spec.InstanceProfile); name != "" {
		if a := r.knownProfiles.get(name); a.known && !a.value.exists {
			return unmet(kind, InstanceProfileNotFound,
				fmt.Sprintf("spec.instanceProfile is %q: the account has no such instance profile", name))
		}
	}
	// The earlier result counts while there is no new one (E-03).
	if c, current := said(class, kind); current && c.Status == metav1.ConditionFalse {
		network := c.Reason == VPCMismatch && (result.Subnets == nil || result.Groups == nil)
		profile := c.Reason == InstanceProfileNotFound && !r.profileAsked(class)
		if network || profile {
			return unmet(kind, c.Reason, c.Message)
		}
	}
	for _, c := range result.Conditions {
		if c.Status != metav1.ConditionTrue && c.Type != CapacityReservationsReady && c.Reason != Propagating {
			return unknown(kind, NotResolved, "it is not known yet what the class stands for: see "+c.Type)
		}
	}
	return met(kind, "")
}

// add appends a condition that is based on answers.
func (into *Result) add(c karpenterv1.Condition, b basis, now time.Time) {
	into.Conditions = append(into.Conditions, old(c, b, now))
	into.stale(b)
}

// keep appends the condition of a part without an answer; the status stays as it is.
func (into *Result) keep(kind string, r *Resolver, class *awsv1.EC2NodeClass, b basis, now time.Time) {
	_, current := said(class, kind)
	c := kept(class, kind, current, b.failure, r.started, now)
	into.Conditions = append(into.Conditions, c)
	since, _ := lastSeenIn(c.Message)
	b.seen = since.at
	into.stale(b)
}

// stale updates After and StaleSince for an answer that could not be refreshed.
func (into *Result) stale(b basis) {
	if b.failure == nil {
		return
	}
	into.After = min(into.After, retryAfter)
	if !b.seen.IsZero() && (into.StaleSince.IsZero() || b.seen.Before(into.StaleSince)) {
		into.StaleSince = b.seen
	}
}

// zones returns those of the class's subnets; nil when there are none.
func (into *Result) zones() map[string]bool {
	if len(into.Status.Subnets) == 0 {
		return nil
	}
	zones := map[string]bool{}
	for _, s := range into.Status.Subnets {
		zones[s.Zone] = true
	}
	return zones
}

// forget removes what no class needs any more.
func (r *Resolver) forget(now time.Time) {
	r.knownSubnets.forget(now)
	r.knownGroups.forget(now)
	r.knownParameters.forget(now)
	r.knownImages.forget(now)
	r.knownReservations.forget(now)
	r.knownPlacements.forget(now)
	r.knownProfiles.forget(now)
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.terms, func(_ string, t terms) bool { return now.Sub(t.used) > forgetAfter })
	maps.DeleteFunc(r.accepted, func(name string, _ bool) bool { return !r.knownProfiles.get(name).known })
}
