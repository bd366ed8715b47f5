// Package parity compares what users of Karpenter rely on with Karpenter itself: names, types, labels. Joiner's own
// module has tables for this, so it needs no Karpenter. The tests here check that a table is Karpenter's; the tests
// there check that Joiner is like the table.
package parity

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/awslabs/operatorpkg/status"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/karpenter/kwok/apis"
	_ "sigs.k8s.io/karpenter/kwok/apis/v1alpha1" // adds its labels to those of nodes
	autoscalingv1beta1 "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	peerv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	_ "sigs.k8s.io/karpenter/pkg/cloudprovider/metrics"
	"sigs.k8s.io/karpenter/pkg/controllers"
	nodemetrics "sigs.k8s.io/karpenter/pkg/controllers/metrics/node"
	_ "sigs.k8s.io/karpenter/pkg/operator" // build_info, and the calls of client-go
)

var rewrite = flag.Bool("rewrite", false, "write the tables of Karpenter's names anew")

// metricsTable has a line for each family: name, type, labels in alphabetical order, buckets or quantiles.
const metricsTable = "../../internal/controller/metrics/testdata/karpenter.txt"

var described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// K-08: the table of metrics has what Karpenter registers, with the provider for KWOK.
func TestK08_TheTableOfMetricsIsKarpenters(t *testing.T) {
	_ = controllers.NewControllers // its packages register their metrics when they are loaded
	nodemetrics.NewController(nil)
	registerConditions()
	table := strings.Join(families(t), "\n") + "\n"
	if n := strings.Count(table, "\nkarpenter_"); n < 60 {
		t.Fatalf("only %d families were found:\n%s", n, table)
	}
	if *rewrite {
		if err := os.WriteFile(metricsTable, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(metricsTable)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != table {
		t.Errorf("%s has\n%s\nKarpenter has (go test ./parity -rewrite writes it)\n%s", metricsTable, have, table)
	}
}

// registerConditions makes the status controllers as Karpenter's list of controllers does: each registers the metrics
// of its kind.
func registerConditions() {
	buckets := status.WithHistogramBuckets(prometheus.ExponentialBuckets(0.5, 2, 15))
	class := peerv1.NodeClassLabelKey(schema.GroupKind{Group: apis.Group, Kind: "KWOKNodeClass"})
	status.NewController[*peerv1.NodeClaim](nil, nil, status.EmitDeprecatedMetrics, buckets,
		status.WithLabels(class, peerv1.NodePoolLabelKey))
	status.NewController[*peerv1.NodePool](nil, nil, status.EmitDeprecatedMetrics, buckets)
	status.NewGenericObjectController[*corev1.Node](nil, nil, buckets,
		status.WithLabels(class, peerv1.NodePoolLabelKey, peerv1.NodeInitializedLabelKey))
	status.NewGenericObjectController[*autoscalingv1beta1.CapacityBuffer](nil, nil, status.EmitDeprecatedMetrics,
		buckets)
}

// families returns the registered metrics, sorted.
func families(t *testing.T) (lines []string) {
	t.Helper()
	for _, collector := range collectors(t) {
		descs := make(chan *prometheus.Desc)
		go func() {
			collector.Describe(descs)
			close(descs)
		}()
		for desc := range descs {
			found := described.FindStringSubmatch(desc.String())
			if found == nil || !strings.HasPrefix(found[1], "karpenter_") && !strings.HasPrefix(found[1],
				"operator_") {
				continue
			}
			labels := slices.DeleteFunc(strings.Split(found[2], ","), func(l string) bool { return l == "" })
			kind, shape := measure(t, collector, labels)
			slices.Sort(labels)
			lines = append(lines,
				strings.TrimRight(fmt.Sprintf("%s %s {%s} %s", found[1], kind, strings.Join(labels, ","),
					shape), " "))
		}
	}
	slices.Sort(lines)
	return lines
}

// collectors returns those of controller-runtime's registry, which does not list them itself.
func collectors(t *testing.T) []prometheus.Collector {
	t.Helper()
	registry, ok := ctrlmetrics.Registry.(*prometheus.Registry)
	if !ok {
		t.Fatalf("the registry is a %T", ctrlmetrics.Registry)
	}
	field := reflect.ValueOf(registry).Elem().FieldByName("collectorsByID")
	if !field.IsValid() {
		t.Fatal("the library's registry has no collectorsByID any more")
	}
	byID := *(*map[uint64]prometheus.Collector)(unsafe.Pointer(field.UnsafeAddr()))
	all := make([]prometheus.Collector, 0, len(byID))
	for _, c := range byID {
		all = append(all, c)
	}
	return all
}

// measure makes one series of a collector, and returns its type and its buckets or quantiles.
func measure(t *testing.T, collector prometheus.Collector, labels []string) (kind, shape string) {
	t.Helper()
	values := make([]string, len(labels))
	var made prometheus.Metric
	switch vec := collector.(type) {
	case *prometheus.CounterVec:
		made = vec.WithLabelValues(values...)
	case *prometheus.GaugeVec:
		made = vec.WithLabelValues(values...)
	case *prometheus.HistogramVec:
		made = vec.WithLabelValues(values...).(prometheus.Metric)
	case *prometheus.SummaryVec:
		made = vec.WithLabelValues(values...).(prometheus.Metric)
	case prometheus.Metric:
		made = vec
	default:
		t.Fatalf("a collector is a %T", collector)
	}
	var written dto.Metric
	if err := made.Write(&written); err != nil {
		t.Fatal(err)
	}
	var numbers []string
	switch {
	case written.Counter != nil:
		return "counter", ""
	case written.Histogram != nil:
		for _, b := range written.Histogram.Bucket {
			numbers = append(numbers, number(b.GetUpperBound()))
		}
		return "histogram", strings.Join(numbers, ",")
	case written.Summary != nil:
		for _, q := range written.Summary.Quantile {
			numbers = append(numbers, number(q.GetQuantile()))
		}
		return "summary", strings.Join(numbers, ",")
	}
	return "gauge", ""
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
