package autonode

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/app/operator"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

// mostInside is how many bytes the specification allows the operator as a part of another program.
const mostInside = 10 << 20

// inside measures what the operator costs as a part of another program. That program, an operator of Karpenter,
// has caches of pools, node classes, claims and nodes anyway. Here each of both has its own; one process would share
// them.
func (w *world) inside(pools int) {
	w.t.Helper()
	w.halt()
	ctx, stop := context.WithCancel(w.ctx)
	var wg sync.WaitGroup
	defer func() { stop(); wg.Wait(); w.run() }() // pools go only while an operator runs
	silent := funcr.New(func(string, string) {}, funcr.Options{})
	log.SetLogger(silent)
	guest := w.hostedConfig()
	none := liveMemory()
	caches := w.otherOperator(ctx, &wg, guest)
	other := liveMemory()

	config := operator.DefaultConfig()
	config.Guest, config.Namespace = guest, w.namespace
	config.MetricsBindAddress, config.HealthProbeBindAddress = "0", "0"
	config.InfraID, config.InstanceProfile = infraID, infraID+"-worker"
	config.UserDataFile, config.AMIs = w.userData, []string{"ami-0a"}
	var err error
	if config.Management, err = clientcmd.BuildConfigFromFlags("", w.kubeconfig); err != nil {
		w.t.Fatal(err)
	}
	wg.Go(func() {
		if err := operator.Run(ctx, config, silent); err != nil {
			w.t.Error(err)
		}
	})
	w.policy(restrict(in(instanceType, "a", "b", "c")))
	w.allMerged(pools, in(instanceType, "a", "b", "c")) // it works
	w.quiet()
	w.conforming("True", "Conforms")
	both := liveMemory()
	runtime.KeepAlive(caches)
	more := both - other
	w.t.Logf("inside another program: %.1f MiB are live more, %.1f of them caches that the other one has, too",
		mib(more), mib(other-none))
	if more > mostInside {
		w.t.Errorf("inside another program %.1f MiB are live more, want at most %.0f", mib(more), mib(mostInside))
	}
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// liveMemory returns the bytes of heap and stacks that this process uses after a garbage collection.
func liveMemory() int64 {
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

// hostedConfig returns the operator's access to the guest.
func (w *world) hostedConfig() *rest.Config {
	w.t.Helper()
	id := cluster.Identity{Name: "inside", User: operatorUser,
		Groups: []string{"kubernetes", "system:serviceaccounts:openshift"}}
	if _, err := w.guest.Cluster.KubeconfigFor(id); err != nil {
		w.t.Fatal(err)
	}
	config, err := w.guest.Cluster.RESTConfig(id.Name)
	if err != nil {
		w.t.Fatal(err)
	}
	return config
}

// otherOperator starts the caches of an operator of Karpenter.
func (w *world) otherOperator(ctx context.Context, wg *sync.WaitGroup, config *rest.Config) cache.Cache {
	w.t.Helper()
	scheme := kruntime.NewScheme()
	for _, register := range []func(*kruntime.Scheme) error{corev1.AddToScheme, hypershiftv1.AddToScheme,
		hypershiftv1beta1.AddToScheme, karpenterv1.AddToScheme, karpenterawsv1.AddToScheme} {
		if err := register(scheme); err != nil {
			w.t.Fatal(err)
		}
	}
	options := cache.Options{Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields()}
	caches, err := cache.New(config, options)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, kind := range []client.Object{&karpenterv1.NodePool{}, &karpenterv1.NodeClaim{},
		&karpenterawsv1.EC2NodeClass{}, &hypershiftv1.OpenshiftEC2NodeClass{}, &corev1.Node{}} {
		if _, err := caches.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			w.t.Fatal(err)
		}
	}
	wg.Go(func() {
		if err := caches.Start(ctx); err != nil {
			w.t.Error(err)
		}
	})
	if !caches.WaitForCacheSync(ctx) {
		w.t.Fatal("the caches were not filled")
	}
	return caches
}
