// Package kubelets makes nodes of EC2 instances that nobody boots. It polls DescribeInstances, and reads the user data
// of each running instance of a cluster as its image's software would (package boot). It registers the Node that the
// kubelet would register; from then on KWOK plays the kubelet. When an instance has ended, its Node is deleted, as by
// the cloud controller manager.
//
// It knows AWS through the SDK only, so that it works with any server that speaks EC2's protocol (E-64).
package kubelets

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/localcluster/aws/boot"
)

const (
	// clusterTag is on every instance of a cluster, with the cluster's name.
	clusterTag = "eks:eks-cluster-name"
	// every is the default time between two listings of instances.
	every = time.Second
	// atOnce is how many instances may boot at the same time.
	atOnce = 8
	// absences is how many listings in a row have to lack an instance until it counts as gone.
	absences = 3
)

// Options say whose instances become nodes, and where.
type Options struct {
	AWS     aws.Config
	Cluster string // name
	// Kube has the credentials of kubelets and of the cloud controller manager. The user data of an instance says
	// where its Node registers.
	Kube  *rest.Config
	Every time.Duration // between two listings; a second when 0
	Log   io.Writer     // a line for each node that comes, goes or does not come; nil for none
}

// Kubelets are the kubelets of a cluster's instances.
type Kubelets struct {
	options Options
	ec2     *ec2.Client
	kube    kubernetes.Interface
	known   known
	cancel  context.CancelFunc
	done    chan struct{}

	mu       sync.Mutex
	nodes    map[string]string // by instance: the name of its Node
	missing  map[string]int    // by instance with a Node: how many listings have lacked it
	failed   map[string]string // by instance: why there is no node
	hopeless map[string]bool   // by instance: it is not tried again
	clients  map[string]kubernetes.Interface
}

// Start begins to make nodes. The caller must call Stop.
func Start(o Options) (*Kubelets, error) {
	if o.Cluster == "" || o.Kube == nil {
		return nil, errors.New("kubelets: Options.Cluster and Options.Kube are needed")
	}
	if o.Every == 0 {
		o.Every = every
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	kube, err := kubernetes.NewForConfig(o.Kube)
	if err != nil {
		return nil, fmt.Errorf("kubelets: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &Kubelets{
		options: o, ec2: ec2.NewFromConfig(o.AWS), kube: kube, cancel: cancel, done: make(chan struct{}),
		nodes: map[string]string{}, missing: map[string]int{}, failed: map[string]string{},
		hopeless: map[string]bool{}, clients: map[string]kubernetes.Interface{},
	}
	go k.run(ctx)
	return k, nil
}

// Stop stops making nodes. Existing Nodes stay.
func (k *Kubelets) Stop() {
	k.cancel()
	<-k.done
}

// Failures returns why instances have no node, by their ids.
func (k *Kubelets) Failures() map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.failed)
}

func (k *Kubelets) run(ctx context.Context) {
	defer close(k.done)
	tick := time.NewTicker(k.options.Every)
	defer tick.Stop()
	before := k.adopt(ctx)
	for {
		if before != nil { // Nodes of an earlier process
			before = k.adopt(ctx)
		} else if err := k.step(ctx); err != nil && ctx.Err() == nil {
			k.logf("instances cannot be listed: %v", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// adopt takes over the existing Nodes.
func (k *Kubelets) adopt(ctx context.Context) error {
	list, err := k.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range list.Items {
		if id := instanceOf(&node); id != "" {
			k.nodes[id] = node.Name
		}
	}
	return nil
}

// instanceOf returns the instance that a node's provider ID names, or "".
func instanceOf(node *corev1.Node) string {
	rest, ours := strings.CutPrefix(node.Spec.ProviderID, "aws:///")
	if !ours {
		return ""
	}
	return rest[strings.LastIndex(rest, "/")+1:]
}

// step looks at every instance once.
func (k *Kubelets) step(ctx context.Context) error {
	listed := map[string]types.Instance{}
	pages := ec2.NewDescribeInstancesPaginator(k.ec2, &ec2.DescribeInstancesInput{Filters: []types.Filter{
		{Name: aws.String("tag:" + clusterTag), Values: []string{k.options.Cluster}},
	}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, reservation := range page.Reservations {
			for _, i := range reservation.Instances {
				listed[aws.ToString(i.InstanceId)] = i
			}
		}
	}
	var fresh []types.Instance
	for _, id := range slices.Sorted(maps.Keys(listed)) {
		if stateOf(listed[id]) == types.InstanceStateNameRunning && k.wants(id) {
			fresh = append(fresh, listed[id])
		}
	}
	k.bootAll(ctx, fresh)
	ended := k.ended(listed)
	for _, id := range slices.Sorted(maps.Keys(ended)) {
		k.remove(ctx, id, ended[id])
	}
	return nil
}

func stateOf(i types.Instance) types.InstanceStateName {
	if i.State == nil {
		return ""
	}
	return i.State.Name
}

func (k *Kubelets) wants(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.nodes[id] == "" && !k.hopeless[id]
}

// bootAll boots instances, several at the same time.
func (k *Kubelets) bootAll(ctx context.Context, fresh []types.Instance) {
	var all sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for _, i := range fresh {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			k.tell(aws.ToString(i.InstanceId), k.boot(ctx, i))
		})
	}
	all.Wait()
}

// tell records and logs why an instance has no node, each reason once.
func (k *Kubelets) tell(id string, err error) {
	k.mu.Lock()
	before := k.failed[id]
	delete(k.failed, id)
	if err != nil {
		k.failed[id] = err.Error()
		var unreadable *unreadableError
		k.hopeless[id] = errors.As(err, &unreadable)
	}
	k.mu.Unlock()
	if err != nil && err.Error() != before {
		k.logf("%s has no node: %v", id, err)
	}
}

// unreadableError says that an instance will never be a node, since its user data is read only once.
type unreadableError struct{ err error }

func (u *unreadableError) Error() string { return "its user data cannot be used: " + u.err.Error() }
func (u *unreadableError) Unwrap() error { return u.err }

// boot does what the machine does at its start, up to the registration of its Node.
func (k *Kubelets) boot(ctx context.Context, i types.Instance) error {
	config, image, err := k.read(ctx, i)
	if err != nil {
		return err
	}
	kind, err := k.known.instanceType(ctx, k.ec2, i.InstanceType)
	if err != nil {
		return err
	}
	volumes, err := k.ec2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{Filters: []types.Filter{
		{Name: aws.String("attachment.instance-id"), Values: []string{aws.ToString(i.InstanceId)}},
	}})
	if err != nil {
		return err
	}
	node := newNode(i, config, machine{kind: kind, image: image, disk: diskSize(i, image, volumes.Volumes),
		region: k.options.AWS.Region})
	client, err := k.join(config.Cluster)
	if err != nil {
		return &unreadableError{err}
	}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("registering at %s: %w", config.Cluster.Endpoint, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.nodes[aws.ToString(i.InstanceId)] = node.Name
	return nil
}

// read reads an instance's user data as the software of its image does.
func (k *Kubelets) read(ctx context.Context, i types.Instance) (boot.Config, types.Image, error) {
	data, err := UserData(ctx, k.ec2, aws.ToString(i.InstanceId))
	if err != nil {
		return boot.Config{}, types.Image{}, err
	}
	image, err := k.known.image(ctx, k.ec2, aws.ToString(i.ImageId))
	if err != nil {
		return boot.Config{}, types.Image{}, err
	}
	read := boot.AL2023
	if isBottlerocket(image) {
		read = boot.Bottlerocket
	}
	config, err := read(data)
	if err != nil {
		return boot.Config{}, types.Image{}, &unreadableError{err}
	}
	if config.Cluster.Name != k.options.Cluster {
		err := fmt.Errorf("it is for cluster %q, the instance's tag is for %q", config.Cluster.Name, k.options.Cluster)
		return boot.Config{}, types.Image{}, &unreadableError{err}
	}
	return config, image, nil
}

func isBottlerocket(image types.Image) bool {
	return strings.Contains(aws.ToString(image.Name), "bottlerocket")
}

// UserData returns the user data of an instance, decoded.
func UserData(ctx context.Context, client *ec2.Client, instance string) ([]byte, error) {
	out, err := client.DescribeInstanceAttribute(ctx, &ec2.DescribeInstanceAttributeInput{
		InstanceId: &instance, Attribute: types.InstanceAttributeNameUserData,
	})
	if err != nil {
		return nil, err
	}
	if out.UserData == nil {
		return nil, nil
	}
	data, err := base64.StdEncoding.DecodeString(aws.ToString(out.UserData.Value))
	if err != nil {
		return nil, &unreadableError{err}
	}
	return data, nil
}

// join returns a client for the API server in the user data; it trusts only the CA in the user data.
func (k *Kubelets) join(cluster boot.Cluster) (kubernetes.Interface, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := cluster.Endpoint + "\n" + string(cluster.CA)
	if client := k.clients[key]; client != nil {
		return client, nil
	}
	config := rest.CopyConfig(k.options.Kube)
	config.Host, config.CAData, config.CAFile = cluster.Endpoint, cluster.CA, ""
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	k.clients[key] = client
	return client, nil
}

// ended returns the nodes whose instances have ended, by instance. An instance that is shutting down has ended for its
// pods, but EC2 may take a while: its Node stays until then.
func (k *Kubelets) ended(listed map[string]types.Instance) map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	gone := map[string]string{}
	for id, name := range k.nodes {
		i, is := listed[id]
		if is {
			delete(k.missing, id)
		} else {
			k.missing[id]++
		}
		if is && stateOf(i) == types.InstanceStateNameTerminated || k.missing[id] >= absences {
			gone[id] = name
		}
	}
	for id := range k.failed {
		if i, is := listed[id]; !is || stateOf(i) == types.InstanceStateNameTerminated {
			delete(k.failed, id)
		}
	}
	return gone
}

// remove deletes the Node of an instance that has ended, unless the name belongs to another one by now.
func (k *Kubelets) remove(ctx context.Context, id, name string) {
	nodes := k.kube.CoreV1().Nodes()
	node, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if err == nil && instanceOf(node) == id && node.DeletionTimestamp == nil {
		err = nodes.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &node.UID}})
		k.logf("%s has ended: Node %s is deleted", id, name)
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		k.logf("deleting Node %s of %s: %v", name, id, err)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.nodes, id)
	delete(k.missing, id)
	k.hopeless[id] = true // it may be listed for an hour
}

// logf writes a line as a whole, also with concurrent writers.
func (k *Kubelets) logf(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, _ = fmt.Fprintf(k.options.Log, "kubelets: "+format+"\n", args...)
}
