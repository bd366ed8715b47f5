// Command karpenter-operator shows how another operator enforces AutoNodePolicies with the module autonodepolicy
// it makes NodePools and EC2NodeClasses from what users of a hosted cluster write, under the provider's
// policy. It is an example: HyperShift's own operator has everything around it already. See reconciler.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/api/v1beta1"
)

func main() {
	guest := flag.String("guest-kubeconfig", "", "kubeconfig of the hosted cluster")
	management := flag.String("management-kubeconfig", "", "kubeconfig of the management cluster")
	namespace := flag.String("namespace", "", "namespace of the hosted control plane")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), *guest, *management, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run sets up the two clusters and works until ctx ends.
func run(ctx context.Context, guest, management, namespace string) error {
	var configs []*rest.Config
	for _, path := range []string{guest, management} {
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		configs = append(configs, config)
	}
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return err
	}
	karpenter := schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}
	scheme.AddKnownTypes(karpenter, &karpenterv1.NodePool{}, &karpenterv1.NodePoolList{})
	metav1.AddToGroupVersion(scheme, karpenter)
	mgr, err := ctrl.NewManager(configs[0],
		ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	other, err := cluster.New(configs[1], func(o *cluster.Options) {
		o.Scheme = scheme
		o.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(other); err != nil {
		return err
	}
	if err := controllers(mgr, other, clusters{guest: mgr.GetClient(), management: other.GetClient(),
		namespace: namespace}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// controllers adds the three controllers. A change of the policy wakes all wrappers (R19).
func controllers(mgr ctrl.Manager, other cluster.Cluster, c clusters) error {
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(classKind)
	for _, side := range []struct {
		kind schema.GroupVersionKind
		owns client.Object
		step reconcile.Func
	}{{poolWrapper, &karpenterv1.NodePool{}, c.reconcilePool}, {classWrapper, class, c.reconcileClass}} {
		wrapper := &unstructured.Unstructured{}
		wrapper.SetGroupVersionKind(side.kind)
		all := func(ctx context.Context, _ *v1beta1.AutoNodePolicy) (requests []ctrl.Request) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(side.kind)
			if err := c.guest.List(ctx, list); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "listing wrappers")
			}
			for _, item := range list.Items {
				requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&item)})
			}
			return requests
		}
		err := ctrl.NewControllerManagedBy(mgr).Named(side.kind.Kind).For(wrapper).Owns(side.owns).
			WatchesRawSource(source.Kind(other.GetCache(), &v1beta1.AutoNodePolicy{},
				handler.TypedEnqueueRequestsFromMapFunc(all))).Complete(side.step)
		if err != nil {
			return err
		}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("policy").
		WatchesRawSource(source.Kind(other.GetCache(), &v1beta1.AutoNodePolicy{},
			&handler.TypedEnqueueRequestForObject[*v1beta1.AutoNodePolicy]{})).
		Complete(reconcile.Func(c.reconcilePolicy))
}
