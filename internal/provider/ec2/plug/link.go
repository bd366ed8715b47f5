package plug

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/calls"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/class"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/pace"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/queue"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tables"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
)

// Reasons why AWS cannot be reached (E-65, E-66).
const (
	ReasonRegion      = "RegionUnknown"
	ReasonCredentials = "CredentialsNotFound"
	reasonStarting    = "Starting"
)

const (
	// patience is the timeout of the first questions.
	patience = 20 * time.Second
	// imdsPatience is the timeout of the machine's own metadata service: outside of AWS there is none.
	imdsPatience = 2 * time.Second
)

// trouble is why something cannot be done.
type trouble struct{ Reason, Message string }

// link holds the connection to AWS. At first there is none.
type link struct {
	settings settings
	deps     plugin.Deps
	meter    *meter
	clock    timer.Clock
	load     func(ctx context.Context) (aws.Config, error)

	mu      sync.Mutex
	now     *connection
	missing trouble
	facts   facts
}

// connection is what exists once AWS can be reached.
type connection struct {
	region   string
	clients  calls.Clients
	machines *ec2.Provider
	resolver *resolve.Resolver
	types    *offering.Types
	prices   *offering.Prices
}

// facts are what is known of the cluster (E-16).
type facts struct {
	join       class.Join
	kubernetes string // version, such as 1.34
	pods       subnet.PodAddresses
}

func newLink(s settings, deps plugin.Deps) *link {
	l := &link{settings: s, deps: deps, meter: newMeter(deps.Registerer, deps.Log), clock: timer.Real{},
		missing: trouble{reasonStarting, "nobody has asked yet"}}
	l.meter.offers = func() ([]ec2.Offered, []ec2.Size) {
		if c := l.connected(); c != nil {
			return c.machines.OnOffer()
		}
		return nil, nil
	}
	l.load = func(ctx context.Context) (aws.Config, error) { return config.LoadDefaultConfig(ctx) }
	l.facts.join = class.Join{Cluster: l.given()}
	return l
}

// given returns the facts from the settings.
func (l *link) given() userdata.Cluster {
	return userdata.Cluster{Name: l.settings.clusterName, Endpoint: l.settings.clusterEndpoint,
		CA: l.settings.clusterCA, CIDR: l.settings.serviceCIDR}
}

// connected returns the connection, nil if there is none yet.
func (l *link) connected() *connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// why returns why there is no connection.
func (l *link) why() trouble {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.missing
}

// ready returns the text of the readiness probe. It is "" before any attempt, as in a process that is not the leader.
func (l *link) ready() string {
	if why := l.why(); l.connected() == nil && why.Reason != reasonStarting {
		return why.Reason + ": " + why.Message
	}
	return ""
}

// known returns the facts.
func (l *link) known() facts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts
}

// connect finds region and credentials by the SDK's own chain, and creates the connection. ctx ends with the process.
func (l *link) connect(ctx context.Context) error {
	cfg, why := find(ctx, l.load)
	if why.Reason != "" {
		l.mu.Lock()
		l.missing = why
		l.mu.Unlock()
		return fmt.Errorf("%s: %s", why.Reason, why.Message)
	}
	c, err := l.make(ctx, cfg)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now, l.missing = c, trouble{}
	return nil
}

// find returns the SDK's configuration, or why there is none.
func find(ctx context.Context, load func(context.Context) (aws.Config, error)) (aws.Config, trouble) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cfg, err := load(ctx)
	if err != nil {
		return cfg, trouble{ReasonCredentials, fmt.Sprintf("the settings of AWS cannot be read: %s", err)}
	}
	if cfg.Region == "" {
		cfg.Region = regionHere(ctx, cfg)
	}
	if cfg.Region == "" {
		return cfg, trouble{ReasonRegion, "no region is set, and there is no metadata service to ask: set AWS_REGION"}
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return cfg, trouble{ReasonCredentials,
			fmt.Sprintf("no credentials for AWS: give the service account a role, by Pod Identity "+
				"or by annotation eks.amazonaws.com/role-arn (IRSA). Tried were environment, shared files, web identity, container and "+
				"instance: %s", oneLine(err))}
	}
	return cfg, trouble{}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// regionHere asks the machine's metadata service; "" when there is none.
func regionHere(ctx context.Context, cfg aws.Config) string {
	ctx, cancel := context.WithTimeout(ctx, imdsPatience)
	defer cancel()
	out, err := imds.NewFromConfig(cfg).GetRegion(ctx, &imds.GetRegionInput{})
	if err != nil {
		return ""
	}
	return out.Region
}

// make creates the connection.
func (l *link) make(ctx context.Context, cfg aws.Config) (*connection, error) {
	clock, s := l.clock, l.settings
	pricing, priced := offering.PricingEndpoint{Cluster: cfg.Region, Setting: s.pricingRegion,
		Isolated: s.isolatedVPC}.Region()
	clients := calls.New(calls.Config{AWS: cfg, PricingRegion: pricing, Clock: clock, Pace: pace.New(clock),
		Observe: l.meter.observe})
	c := &connection{region: cfg.Region, clients: clients, types: offering.NewTypes(clients.EC2, clock)}
	known, err := tables.Read()
	if err != nil {
		return nil, err
	}
	from := offering.PricesConfig{Clock: clock, Region: cfg.Region, EC2: clients.EC2, Table: known.Prices(cfg.Region)}
	if priced {
		from.Pricing = clients.Pricing
	}
	c.prices = offering.NewPrices(from)
	ask := resolve.Config{
		EC2: clients.EC2, SSM: clients.SSM, IAM: clients.IAM, Now: l.deps.Now, Cluster: s.clusterName,
		Region: cfg.Region, SubnetRefresh: s.subnets, SecurityGroupRefresh: s.groups, AMIRefresh: s.amis,
	}
	if s.isolatedVPC {
		ask.IAM = nil
	}
	if c.resolver, err = resolve.New(ask); err != nil {
		return nil, err
	}
	c.machines, err = ec2.New(ctx, ec2.Config{
		Cluster: NewCluster(l.deps.Client, l.deps.Live), Process: string(uuid.NewUUID()),
		Clients: clients, Clock: clock, Name: s.clusterName, Region: cfg.Region,
		Facts: func() ec2.Facts {
			known := l.known()
			return ec2.Facts{Join: known.join.Cluster, DNS: known.join.DNS, PodAddresses: known.pods}
		},
		Settings: offering.Settings{ReservedInterfaces: s.reservedInterfaces, MemoryOverhead: s.memoryOverhead},
		Prices:   c.prices, Types: c.types, Correct: l.deps.Correct, Meter: l.meter, Branches: known.Branches,
		Told: l.tell, Rendered: l.meter.rendered,
	})
	return c, err
}

// look updates the facts of the cluster. complete is false when something must be asked again.
func (l *link) look(ctx context.Context, c *connection) (complete bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	next := l.known()
	next.join.Missing, next.join.None = "", false
	complete = true
	fromEKS := ""
	if j := next.join.Cluster; j.Endpoint == "" || j.CA == "" || j.CIDR == "" || l.settings.eksControlPlane {
		fromEKS, complete = l.askEKS(ctx, c, &next)
	}
	version, err := fromEKS, error(nil)
	if !l.settings.eksControlPlane {
		version, err = l.deps.Version(ctx)
	}
	if err != nil {
		l.deps.Log.Info("the version of Kubernetes is not known", "reason", err.Error())
		complete = false
	} else if version != "" {
		next.kubernetes = version
	}
	if dns, err := l.dns(ctx); err == nil {
		next.join.DNS = dns
	}
	if pods, err := l.podAddresses(ctx); err == nil {
		next.pods = pods
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.facts = next
	return complete
}

// podAddresses returns where pods get their addresses from (E-12). Amazon's network plug-in takes them from the node's
// subnet, one by one or in prefixes, depending on its DaemonSet. Other plug-ins take none there.
func (l *link) podAddresses(ctx context.Context) (subnet.PodAddresses, error) {
	var daemons appsv1.DaemonSet
	err := l.deps.Live.Get(ctx, types.NamespacedName{Namespace: "kube-system", Name: "aws-node"}, &daemons)
	if apierrors.IsNotFound(err) {
		return subnet.Elsewhere, nil
	}
	for _, container := range daemons.Spec.Template.Spec.Containers {
		for _, e := range container.Env {
			if e.Name == "ENABLE_PREFIX_DELEGATION" && e.Value == "true" {
				return subnet.Prefixes, err
			}
		}
	}
	return subnet.Secondary, err
}

// askEKS asks EKS for what the settings leave out. It returns the cluster's version.
func (l *link) askEKS(ctx context.Context, c *connection, next *facts) (version string, complete bool) {
	out, err := c.clients.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(l.settings.clusterName)})
	lack := "set --cluster-endpoint, --cluster-ca-bundle and --cluster-service-cidr, which replace this call"
	switch refused := refusal.Of(err); {
	case err != nil && refused.Code == "ResourceNotFoundException":
		next.join.None = true
		next.join.Missing = fmt.Sprintf("EKS knows no cluster %q in %s: correct --cluster-name, or %s",
			l.settings.clusterName, c.region, lack)
	case err != nil:
		next.join.Missing = fmt.Sprintf("eks:DescribeCluster of %q failed: %s %s; it is asked again; or %s",
			l.settings.clusterName, refused.Code, refused.Message, lack)
	case out.Cluster == nil:
		next.join.Missing = "EKS answered without a cluster; it is asked again"
	default:
		j := &next.join.Cluster
		if j.Endpoint == "" {
			j.Endpoint = aws.ToString(out.Cluster.Endpoint)
		}
		if j.CA == "" && out.Cluster.CertificateAuthority != nil {
			j.CA = aws.ToString(out.Cluster.CertificateAuthority.Data)
		}
		if network := out.Cluster.KubernetesNetworkConfig; j.CIDR == "" && network != nil {
			j.CIDR = aws.ToString(network.ServiceIpv4Cidr)
			if j.CIDR == "" {
				j.CIDR = aws.ToString(network.ServiceIpv6Cidr)
			}
		}
		if j.CIDR == "" || j.Endpoint == "" || j.CA == "" {
			next.join.Missing =
				fmt.Sprintf(
					"EKS does not say endpoint, authority or range of services of %q yet; it is asked again; or %s",
					l.settings.clusterName, lack)
		}
		return aws.ToString(out.Cluster.Version), next.join.Missing == ""
	}
	return "", false
}

// dns returns the address of the cluster's DNS service; none when there is no such service.
func (l *link) dns(ctx context.Context) ([]string, error) {
	var service corev1.Service
	err := l.deps.Live.Get(ctx, types.NamespacedName{Namespace: "kube-system", Name: "kube-dns"}, &service)
	if apierrors.IsNotFound(err) ||
		err == nil && (service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []string{service.Spec.ClusterIP}, nil
}

// tell sends an event about a class or a claim.
func (l *link) tell(e ec2.Event) {
	var about client.Object = &awsv1.EC2NodeClass{}
	if e.Claim != "" {
		about = &karpenterv1.NodeClaim{}
	}
	if err := l.deps.Client.Get(context.Background(), types.NamespacedName{Name: cmp.Or(e.Claim, e.Class)},
		about); err == nil {
		l.deps.Events.Event(about, event.Warning, e.Reason, e.Message)
	}
	if e.Reason == ec2.EventUnauthorized || e.Reason == ec2.EventInstanceFailed {
		l.deps.Wake(Classes) // for a dry run, or a pause
	}
}

// tellClasses sends an event to every node class, about a matter of all of them, once while the text is the same. told
// has the last text of each.
func (l *link) tellClasses(ctx context.Context, told map[types.UID]string, reason, text string) {
	var list awsv1.EC2NodeClassList
	if err := l.deps.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return // the log has it, and the next failure is reported
	}
	for i := range list.Items {
		if each := &list.Items[i]; told[each.UID] != text {
			told[each.UID] = text
			l.deps.Events.Event(each, event.Warning, reason, text)
		}
	}
}

// tellProgram sends an event that is about no class in particular, once while the text is the same. It is on the
// leader's lease, or on each class if there is no lease or it cannot be read.
func (l *link) tellProgram(ctx context.Context, told map[types.UID]string, reason, text string) {
	var lease coordinationv1.Lease
	if l.deps.Lease.Name == "" || l.deps.Live.Get(ctx, l.deps.Lease, &lease) != nil {
		l.tellClasses(ctx, told, reason, text)
		return
	}
	if told[lease.UID] != text {
		told[lease.UID] = text
		l.deps.Events.Event(&lease, event.Warning, reason, text)
	}
}

// queueURL returns the URL of the interruption queue (E-51); "" if none is set.
func (l *link) queueURL(ctx context.Context, c *connection) (string, error) {
	if l.settings.queue == "" {
		return "", nil
	}
	at, err := queue.ParseAddress(l.settings.queue)
	if err != nil || at.URL != "" {
		return at.URL, err
	}
	in := &sqs.GetQueueUrlInput{QueueName: aws.String(at.Name)}
	if at.Account != "" {
		in.QueueOwnerAWSAccountId = aws.String(at.Account)
	}
	out, err := c.clients.SQS.GetQueueUrl(ctx, in)
	if err != nil {
		return "", err
	}
	if aws.ToString(out.QueueUrl) == "" {
		return "", errors.New("SQS answered without a URL")
	}
	return *out.QueueUrl, nil
}
