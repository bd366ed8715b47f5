package operator

import (
	"context"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
)

// EC2ClassFinalizer is on every OpenshiftEC2NodeClass whose EC2NodeClass may exist. HyperShift uses the same name, so
// that a cluster can be handed over either way.
const EC2ClassFinalizer = "hypershift.openshift.io/ec2-nodeclass-finalizer"

const (
	// missingAgainAfter is when to look again for what a node class waits for.
	missingAgainAfter = time.Second
	// bootstrapAgainAfter is when to read again what nodes start with: it changes with each release.
	bootstrapAgainAfter = time.Minute
)

// AWSConfig is what the node classes of AWS need besides policy and wrapper.
type AWSConfig struct {
	// Infra is what is known about the hosted cluster, without Bootstrap.
	Infra merge.Infra
	// Hosted, if not nil, replaces Infra by what the HostedControlPlane says; known is false until one was read
	//
	Hosted func() (infra merge.Infra, known bool)
	// RootVolume is used for what the policy leaves open (G7).
	RootVolume merge.RootVolume
	// Bootstrap finds what nodes of a node class start with.
	Bootstrap Bootstrapper
	// VersionsFromStatus says that Bootstrap follows the version of a class, and status.version says which one that
	// is. Otherwise Bootstrap belongs to ReleaseVersion, "" if unknown.
	VersionsFromStatus bool
	ReleaseVersion     string
}

// EC2NodeClasses returns the kind of OpenshiftEC2NodeClasses and EC2NodeClasses (R28 to R33).
func EC2NodeClasses(config AWSConfig) Kind {
	defaults := karpenterawsv1.EC2NodeClassSpecDefaults()
	before := &bootstraps{}
	return Kind{
		Wrapper: hypershiftv1.OpenshiftEC2NodeClassKind, Product: karpenterawsv1.EC2NodeClassKind,
		Finalizer: EC2ClassFinalizer, Shared: true,
		NewWrapper:     func() client.Object { return &hypershiftv1.OpenshiftEC2NodeClass{} },
		NewWrapperList: func() client.ObjectList { return &hypershiftv1.OpenshiftEC2NodeClassList{} },
		NewProduct:     func() client.Object { return &karpenterawsv1.EC2NodeClass{} },
		NewProductList: func() client.ObjectList { return &karpenterawsv1.EC2NodeClassList{} },
		Make: func(ctx context.Context, policy *hypershiftv1beta1.AutoNodePolicy,
			wrapper client.Object) (Made, error) {
			class := wrapper.(*hypershiftv1.OpenshiftEC2NodeClass)
			release, err := config.releaseOf(ctx, class, before)
			if err != nil {
				return Made{}, err
			}
			infra := config.Infra
			if config.Hosted != nil {
				var known bool
				if infra, known = config.Hosted(); !known {
					return Made{Missing: "the hosted control plane has not said yet how nodes start",
						RetryAfter: missingAgainAfter}, nil
				}
			}
			infra.Bootstrap = release.bootstrap
			return madeClass(merge.EC2NodeClass(policy, class, config.RootVolume, infra), release), nil
		},
		Overwrite: func(product, wanted client.Object) {
			wanted.(*karpenterawsv1.EC2NodeClass).Spec.DeepCopyInto(&product.(*karpenterawsv1.EC2NodeClass).Spec)
		},
		Altered: func(product, wanted client.Object) Difference {
			return differing(&product.(*karpenterawsv1.EC2NodeClass).Spec, &wanted.(*karpenterawsv1.EC2NodeClass).Spec,
				defaults, under("spec"))
		},
		State: func(wrapper client.Object) State {
			status := &wrapper.(*hypershiftv1.OpenshiftEC2NodeClass).Status
			return State{Conditions: &status.Conditions, ObservedPolicy: &status.ObservedPolicy}
		},
		Mirror: mirrorClass,
		PatchStatus: func(before, after client.Object) client.Patch {
			was, is := before.(*hypershiftv1.OpenshiftEC2NodeClass), after.(*hypershiftv1.OpenshiftEC2NodeClass)
			if patch.SameStatus(&was.Status, &is.Status) {
				return nil
			}
			return patch.Status(is, &was.Status, &is.Status)
		},
		Target: func(wrapper client.Object) merge.Target {
			return merge.EC2NodeClassTarget(wrapper.(*hypershiftv1.OpenshiftEC2NodeClass))
		},
	}
}

// madeClass converts the merge of a node class to a Made.
func madeClass(result merge.EC2NodeClassResult, release release) Made {
	made := Made{Problems: result.Problems, Conditions: []condition.Value{result.RootVolume(), release.said},
		RetryAfter: bootstrapAgainAfter}
	if result.Wait != nil {
		made.Missing, made.RetryAfter = result.Wait.Message, missingAgainAfter
		if release.missing != "" {
			made.Missing = release.missing
		}
	}
	made.Withheld = release.withheld
	if result.EC2NodeClass != nil {
		made.Product = result.EC2NodeClass
	}
	if len(result.IgnoredTags) > 0 {
		made.WarningReason, made.Warning = ReasonIgnoredTags,
			"spec.tags: the hosted cluster or the autoscaler has its own value for "+
				strings.Join(result.IgnoredTags, ", ")
	}
	return made
}

// mirrorClass copies the status of the EC2NodeClass, translated to the wrapper's API.
func mirrorClass(wrapper, product client.Object) []karpenterv1.Condition {
	status, said := &wrapper.(*hypershiftv1.OpenshiftEC2NodeClass).Status,
		product.(*karpenterawsv1.EC2NodeClass).Status.DeepCopy()
	status.Subnets, status.SecurityGroups, status.CapacityReservations = nil, nil, nil
	for _, subnet := range said.Subnets {
		status.Subnets = append(status.Subnets, hypershiftv1.Subnet{ID: subnet.ID, Zone: subnet.Zone,
			ZoneID: subnet.ZoneID})
	}
	for _, group := range said.SecurityGroups {
		status.SecurityGroups = append(status.SecurityGroups,
			hypershiftv1.SecurityGroup{ID: group.ID, Name: group.Name})
	}
	for _, reservation := range said.CapacityReservations {
		criteria := hypershiftv1.InstanceMatchCriteriaOpen
		if reservation.InstanceMatchCriteria == "targeted" {
			criteria = hypershiftv1.InstanceMatchCriteriaTargeted
		}
		status.CapacityReservations = append(status.CapacityReservations, hypershiftv1.CapacityReservation{
			ID: reservation.ID, AvailabilityZone: reservation.AvailabilityZone, EndTime: reservation.EndTime,
			InstanceMatchCriteria: criteria, InstanceType: reservation.InstanceType, OwnerID: reservation.OwnerID,
		})
	}
	return said.Conditions
}
