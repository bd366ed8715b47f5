// Package machines reads the instances of a cluster from EC2, and ends them (E-39, E-46, E-54, E-55). It does not know
// which claim an instance belongs to.
package machines

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/batch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/presence"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// EC2 has the calls that this package makes.
type EC2 interface {
	DescribeInstances(context.Context, *ec2.DescribeInstancesInput,
		...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	TerminateInstances(context.Context, *ec2.TerminateInstancesInput,
		...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error)
}

// Config configures Machines.
type Config struct {
	EC2     EC2
	Clock   timer.Clock
	Cluster string // the name, in the tag eks:eks-cluster-name
	// ZoneOf returns the zone of a subnet, "" when unknown; may be nil.
	ZoneOf func(subnet string) string
	// Leaving returns the provider IDs of machines that will end sooner or later: those of claims that are being
	// deleted. When a call of TerminateInstances is due, it waits a moment for them. Nil means unknown.
	Leaving func() []string
	// Described and Terminated are called with the number of asks of a call, and how long the first of them had
	// waited; may be nil.
	Described, Terminated func(asks int, waited time.Duration)
}

// Machines are the instances of a cluster. Safe for concurrent use.
type Machines struct {
	config Config
	absent presence.Book
	gets   *batch.Gatherer[string, Machine]
	ends   *batch.Gatherer[string, Machine]

	mu     sync.Mutex
	ended  map[string]time.Time // by id: when EC2 told [Machines.End] that it has ended for good
	ending map[string]*ending   // by id: instances whose end EC2 has accepted
	failed map[string]failure   // by id: errors of ends for which nobody waited
	// calling has the ids of machines that EC2 is being asked to end, so that it is asked once at a time.
	calling map[string]bool
	// inUse has, by id, the functions that tell whether a machine waiting for the call is in use.
	inUse map[string]func() bool
}

// remembered is how long an ended instance is remembered: callers that wait for its end ask soon.
const remembered = time.Hour

// page is how many instances a call returns: EC2's maximum.
const page = 1000

// together is the window for questions about single instances.
func together() batch.Window {
	return batch.Window{Idle: 20 * time.Millisecond, Longest: 200 * time.Millisecond, Most: 500}
}

// New returns the instances of a cluster. Calls for several callers use ctx, which ends with the process.
func New(ctx context.Context, c Config) *Machines {
	m := &Machines{config: c, ended: map[string]time.Time{}, ending: map[string]*ending{},
		failed: map[string]failure{}, calling: map[string]bool{}, inUse: map[string]func() bool{}}
	gather := batch.Config[string, Machine]{Clock: c.Clock, Window: together(), Compare: strings.Compare,
		Call: m.describe, Told: c.Described}
	m.gets = batch.New(ctx, gather)
	gather.Window, gather.Call, gather.Told = batch.Terminations(), m.terminate, c.Terminated
	if c.Leaving != nil {
		gather.Coming = m.coming
	}
	m.ends = batch.New(ctx, gather)
	return m
}

// List returns the instances of the cluster that run, start, stop or end, ordered by zone and id. It includes those
// that Karpenter has launched (E-55).
func (m *Machines) List(ctx context.Context) ([]Machine, error) {
	return m.list(ctx,
		filter("tag-key", tag.Pool), filter("tag-key", tag.Class), filter("tag:"+tag.ClusterName, m.config.Cluster))
}

// OfLaunches returns the instances of these launches, like List (E-37).
func (m *Machines) OfLaunches(ctx context.Context, launches []launchid.ID) ([]Machine, error) {
	var all []Machine
	for values := range slices.Chunk(launches, maxValues) {
		var ids []string
		for _, id := range values {
			ids = append(ids, string(id))
		}
		list, err := m.list(ctx, filter("tag:"+launchid.Key, ids...), filter("tag:"+tag.ClusterName, m.config.Cluster))
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	slices.SortFunc(all, byProviderID)
	return all, nil
}

// Names returns the node names of instances of the cluster, by provider ID (E-47). EC2 gives these names by address or
// by resource, depending on the subnet. Names leaves out instances that belong to others, are ending, or are unknown
// to EC2.
func (m *Machines) Names(ctx context.Context, providerIDs []string) (map[string]string, error) {
	var ids []string
	wanted := map[string]bool{}
	for _, providerID := range providerIDs {
		if _, id, err := ParseProviderID(providerID); err == nil {
			ids, wanted[providerID] = append(ids, id), true
		}
	}
	slices.Sort(ids)
	names := map[string]string{}
	for values := range slices.Chunk(slices.Compact(ids), maxValues) {
		list, err := m.list(ctx, filter("instance-id", values...), filter("tag:"+tag.ClusterName, m.config.Cluster))
		if err != nil {
			return nil, err
		}
		for _, machine := range list {
			if id := machine.ProviderID(); wanted[id] && machine.DNS != "" && !machine.Ending && !machine.Gone {
				names[id] = machine.DNS
			}
		}
	}
	return names, nil
}

// maxValues is how many values EC2 accepts in one filter.
const maxValues = 200

func filter(name string, values ...string) ec2types.Filter {
	return ec2types.Filter{Name: aws.String(name), Values: values}
}

func (m *Machines) list(ctx context.Context, filters ...ec2types.Filter) ([]Machine, error) {
	filters = append(filters, filter("instance-state-name", "pending", "running", "stopping", "stopped",
		"shutting-down"))
	var all []Machine
	pages := ec2.NewDescribeInstancesPaginator(m.config.EC2,
		&ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(page)})
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing instances: %w", Told(err))
		}
		all = append(all, m.read(out.Reservations)...)
	}
	slices.SortFunc(all, byProviderID)
	return all, nil
}

func (m *Machines) read(reservations []ec2types.Reservation) []Machine {
	var list []Machine
	for _, r := range reservations {
		for i := range r.Instances {
			machine := machineOf(&r.Instances[i], m.config.ZoneOf)
			if machine.InstanceID != "" && !machine.Gone {
				m.absent.Seen(machine.InstanceID)
			}
			list = append(list, machine)
		}
	}
	return list
}

// Get returns one instance, or [provider.ErrNotFound] when it is proved gone (E-39). launched is when it was launched,
// zero when unknown.
func (m *Machines) Get(ctx context.Context, providerID string, launched time.Time) (Machine, error) {
	id, err := instanceOf(providerID)
	if err != nil {
		return Machine{}, fmt.Errorf("%w: %w", provider.ErrNotFound, err)
	}
	if err := m.knownEnded(ctx, id); err != nil {
		return Machine{}, err
	}
	if machine, at, known, err := m.look(ctx, id); known && (err != nil || machine.InstanceID != "") {
		return m.judged(machine, id, launched, at, err)
	}
	machine, err := m.gets.Do(ctx, "", id)
	return m.judged(machine, id, launched, m.config.Clock.Now(), err)
}

// End ends an instance. A nil error means that EC2 has accepted this, or will be asked soon. [provider.ErrNotFound]
// means that the instance is proved gone. inUse is called right before EC2 is asked. If it returns true, the machine
// stays and the caller must ask again. A nil inUse means never in use. Of several callers the last inUse counts.
func (m *Machines) End(ctx context.Context, providerID string, launched time.Time, inUse func() bool) error {
	id, err := instanceOf(providerID)
	if err != nil {
		return fmt.Errorf("%w: %w", provider.ErrNotFound, err)
	}
	if err := m.knownEnded(ctx, id); err != nil {
		return err
	}
	if machine, at, known, err := m.look(ctx, id); known {
		_, err = m.judged(machine, id, launched, at, err)
		return err
	}
	machine, err := Machine{}, m.failure(id)
	if err == nil && m.isCalling(id) {
		return nil
	}
	if err == nil {
		m.mind(id, inUse)
		machine, err = m.ends.Do(ctx, "", id)
	}
	if errors.Is(err, batch.ErrTaken) || errors.Is(err, errInUse) {
		return nil
	}
	m.failure(id) // it is reported now
	_, err = m.judged(machine, id, launched, m.config.Clock.Now(), err)
	return err
}

// knownEnded returns, without a call, an error that is [provider.ErrNotFound] if EC2 has said before that the instance
// has ended. First the node's controller asks, then the claim's asks once more (E-61).
func (m *Machines) knownEnded(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, known := m.ended[id]; known && m.config.Clock.Now().Sub(at) < remembered {
		return &EndedError{ID: id}
	}
	return nil
}

// judged turns an answer about an instance, from the time at, into the result for callers.
func (m *Machines) judged(machine Machine, id string, launched, at time.Time, err error) (Machine, error) {
	switch {
	case err == nil && machine.Gone:
		return Machine{}, &EndedError{ID: id, Reason: machine.Reason, Message: machine.Message}
	case err == nil:
		return machine, nil
	case !isUnknown(err):
		return Machine{}, fmt.Errorf("instance %s: %w", id, Told(err))
	case m.absent.Unknown(id, launched, at):
		return Machine{}, fmt.Errorf("%w: EC2 does not know instance %s any more", provider.ErrNotFound, id)
	}
	return Machine{}, fmt.Errorf("EC2 does not know instance %s yet, or any more; asking again will tell", id)
}

// describe asks about single instances.
func (m *Machines) describe(ctx context.Context, _ string, ids []string) []batch.Answer[Machine] {
	found := map[string]Machine{}
	failed := batch.Apart(ctx, ids, func(ctx context.Context, ids []string) error {
		out, err := m.config.EC2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: ids})
		if err != nil {
			return err
		}
		for _, machine := range m.read(out.Reservations) {
			found[machine.InstanceID] = machine
		}
		return nil
	}, faultOf)
	return answers(ids, found, failed)
}

// terminate ends instances. EC2 returns only the old and the new state of each. An instance that had ended before
// counts as gone, whatever the new state is: a server that is not AWS says shutting-down each time (E-64).
func (m *Machines) terminate(ctx context.Context, _ string, ids []string) []batch.Answer[Machine] {
	kept := m.kept(ids)
	list := make([]batch.Answer[Machine], len(ids))
	var leave []string
	for i, id := range ids {
		if kept[id] {
			list[i].Err = errInUse
		} else {
			leave = append(leave, id)
		}
	}
	if len(leave) == 0 {
		return list
	}
	ended := m.terminateAll(ctx, leave)
	for i, id := range ids {
		if !kept[id] {
			list[i], ended = ended[0], ended[1:]
		}
	}
	return list
}

// terminateAll ends instances without asking whether they are in use.
func (m *Machines) terminateAll(ctx context.Context, ids []string) []batch.Answer[Machine] {
	m.call(ids)
	found := map[string]Machine{}
	failed := batch.Apart(ctx, ids, func(ctx context.Context, ids []string) error {
		out, err := m.config.EC2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
		if err != nil {
			return err
		}
		for _, change := range out.TerminatingInstances {
			id := aws.ToString(change.InstanceId)
			gone := terminated(change.CurrentState) || terminated(change.PreviousState)
			found[id] = Machine{InstanceID: id, Ending: !gone, Gone: gone}
		}
		return nil
	}, faultOf)
	list := answers(ids, found, failed)
	m.asked(ids, list)
	return list
}

func terminated(state *ec2types.InstanceState) bool {
	return state != nil && state.Name == ec2types.InstanceStateNameTerminated
}

func answers(ids []string, found map[string]Machine, failed map[string]error) []batch.Answer[Machine] {
	list := make([]batch.Answer[Machine], len(ids))
	for i, id := range ids {
		machine, known := found[id]
		switch {
		case known:
			list[i].Value = machine
		case failed[id] != nil:
			list[i].Err = failed[id]
		default:
			list[i].Err = errUnnamed
		}
	}
	return list
}
