package autonode

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	standInAgent  = "hypershift-stand-in"
	operatorAgent = "joiner-operator"
	classVAP      = "karpenter.ec2nodeclass.hypershift.io"
	classBinding  = "karpenter-binding.ec2nodeclass.hypershift.io"
	classHold     = "hypershift.openshift.io/ec2-nodeclass-finalizer"
	// standInVolume is the root volume of HyperShift's node classes (U3).
	standInVolume = "{volumeSize: 120Gi, volumeType: gp3, encrypted: true}"
)

// standIn does to a hosted cluster what HyperShift's own operator of Karpenter visibly does (U1 to U5 of the
// specification). It makes one admission policy for EC2NodeClasses, and a fixed node class named default. For each
// OpenshiftEC2NodeClass, which it holds with a finalizer, it makes an EC2NodeClass and writes its whole spec. It is a
// program of ours and has none of HyperShift's code.
type standIn struct {
	t      *testing.T
	client client.Client
	wrote  map[string]any // the specs that it wrote, as the API server stored them, by kind and name
	stop   func()
}

// hypershiftRuns starts a stand-in, which runs until stop or the test's end.
func (w *world) hypershiftRuns() *standIn {
	w.t.Helper()
	config, err := w.guest.Cluster.RESTConfig("exempt")
	if err != nil {
		w.t.Fatal(err)
	}
	config.UserAgent, config.WarningHandler = standInAgent, rest.NoWarnings{}
	made, err := client.New(config, client.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	s := &standIn{t: w.t, client: made, wrote: map[string]any{}}
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(2 * poll); ; {
			if err := s.round(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) &&
				!apierrors.IsAlreadyExists(err) {
				w.t.Errorf("the stand-in: %v", err)
			}
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	s.stop = sync.OnceFunc(func() { cancel(); <-done })
	w.t.Cleanup(s.stop)
	return s
}

// round brings everything in line once; the admission policy comes last.
func (s *standIn) round(ctx context.Context) error {
	err := s.keep(ctx, newObject(classWrapper, "", "default", parse(`{
		subnetSelectorTerms: [{tags: {"kubernetes.io/role/internal-elb": "1"}}],
		securityGroupSelectorTerms: [{tags: {"karpenter.sh/discovery": cluster-x7k2p}}]}`)), nil)
	if err != nil {
		return err
	}
	var wrappers unstructured.UnstructuredList
	wrappers.SetGroupVersionKind(classWrapper)
	if err := s.client.List(ctx, &wrappers); err != nil {
		return err
	}
	for i := range wrappers.Items {
		if err := s.class(ctx, &wrappers.Items[i]); err != nil {
			return err
		}
	}
	policy := newObject(vapKind, "", classVAP, parse(`{failurePolicy: Fail,
		matchConditions: [{name: but-the-operator, expression: "request.userInfo.username != '`+operatorUser+`'"}],
		matchConstraints: {resourceRules: [{apiGroups: [karpenter.k8s.aws], apiVersions: ["*"],
			resources: [ec2nodeclasses],
			operations: [CREATE, UPDATE, DELETE]}]},
		validations: [{expression: "request.operation == 'UPDATE' && object.spec == oldObject.spec",
			message: "Use OpenshiftEC2NodeClass instead."}]}`))
	if err := s.keep(ctx, policy, nil); err != nil {
		return err
	}
	return s.keep(ctx, newObject(bindingKind, "", classBinding,
		parse("{policyName: "+classVAP+", validationActions: [Deny]}")), nil)
}

// class makes the EC2NodeClass of a wrapper, or lets both go when the wrapper is deleted.
func (s *standIn) class(ctx context.Context, wrapper *unstructured.Unstructured) error {
	held := slices.Contains(wrapper.GetFinalizers(), classHold)
	if wrapper.GetDeletionTimestamp() != nil {
		product := newObject(nodeClassKind, "", wrapper.GetName(), nil)
		if err := s.client.Delete(ctx, product); !apierrors.IsNotFound(err) || !held {
			return client.IgnoreNotFound(err)
		}
		wrapper.SetFinalizers(slices.DeleteFunc(wrapper.GetFinalizers(),
			func(f string) bool { return f == classHold }))
		return s.client.Update(ctx, wrapper)
	}
	if !held {
		wrapper.SetFinalizers(append(wrapper.GetFinalizers(), classHold))
		if err := s.client.Update(ctx, wrapper); err != nil {
			return err
		}
	}
	spec := parse(`{
		amiFamily: Custom, amiSelectorTerms: [{id: ami-0a}], userData: boot, instanceProfile: cluster-x7k2p-worker,
		subnetSelectorTerms: [{tags: {"kubernetes.io/role/internal-elb": "1"}}],
		securityGroupSelectorTerms: [{tags: {"karpenter.sh/discovery": cluster-x7k2p}}]}`)
	spec["blockDeviceMappings"] = list(object{"deviceName": rootDevice, "rootVolume": true,
		"ebs": parse(standInVolume)})
	owner := object{"apiVersion": wrapper.GetAPIVersion(), "kind": wrapper.GetKind(), "name": wrapper.GetName(),
		"uid": string(wrapper.GetUID()), "controller": true}
	return s.keep(ctx, newObject(nodeClassKind, "", wrapper.GetName(), spec), owner)
}

// keep creates an object, or overwrites its whole spec if it differs from the result of the last write.
func (s *standIn) keep(ctx context.Context, wanted *unstructured.Unstructured, owner object) error {
	found := newObject(wanted.GroupVersionKind(), "", wanted.GetName(), nil)
	key := fmt.Sprintf("%s %s", wanted.GetKind(), wanted.GetName())
	err := s.client.Get(ctx, client.ObjectKeyFromObject(wanted), found)
	switch {
	case apierrors.IsNotFound(err):
		if owner != nil {
			wanted.Object["metadata"].(object)["ownerReferences"] = list(owner)
		}
		if err := s.client.Create(ctx, wanted); err != nil {
			return err
		}
		s.wrote[key] = field(wanted, "spec")
		return nil
	case err != nil:
		return err
	case s.wrote[key] != nil && reflect.DeepEqual(s.wrote[key], field(found, "spec")):
		return nil
	}
	found.Object["spec"] = wanted.Object["spec"]
	if err := s.client.Update(ctx, found); err != nil {
		return err
	}
	s.wrote[key] = field(found, "spec")
	return nil
}

// probe tries every 200 ms, as a customer, to make an EC2NodeClass by hand. end stops that. It returns how often probe
// asked, and all answers other than a refusal by the admission policy.
func (w *world) probe() (end func() (asked int, wrong []string)) {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	var asked int
	var wrong []string
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			err := w.cadmin.Create(ctx, handMadeClass("probe"), client.DryRunAll)
			if ctx.Err() != nil {
				return
			}
			asked++
			if !refusedBy(err, classVAP) {
				wrong = append(wrong, fmt.Sprintf("%s: %v", time.Now().Format(time.TimeOnly), err))
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() (int, []string) { cancel(); <-done; return asked, wrong }
}

// versions returns the resource versions of all objects of these kinds.
func (w *world) versions(kinds ...kindOfObject) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, kind := range kinds {
		for _, o := range w.list(w.guest.Client, kind) {
			all[kind.Kind+" "+o.GetName()] = o.GetResourceVersion()
		}
	}
	return all
}
