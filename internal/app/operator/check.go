package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
)

// checkGuest makes sure that the guest cluster answers and serves the kinds that the operator reads and writes. It
// also checks that the guest knows the operator by the name that the admission policies will let pass. Its errors are
// for people.
func checkGuest(ctx context.Context, config Config) error {
	ctx, cancel := context.WithTimeout(ctx, serve.ReachWithin)
	defer cancel()
	client, err := serve.CheckServer(ctx, config.Guest)
	if err != nil {
		return fmt.Errorf("the guest cluster: %w", err)
	}
	if err := checkIdentity(ctx, config.Guest, config.GuestUserName); err != nil {
		return err
	}
	wanted := []schema.GroupVersionResource{
		hypershiftv1beta1.GroupVersion().WithResource("openshiftnodepools"),
		karpenterv1.GroupVersion().WithResource("nodepools"), karpenterv1.GroupVersion().WithResource("nodeclaims"),
	}
	if slices.Contains(config.Platforms, PlatformAWS) {
		wanted = append(wanted, hypershiftv1.GroupVersion().WithResource("openshiftec2nodeclasses"),
			karpenterawsv1.GroupVersion().WithResource("ec2nodeclasses"))
	}
	missing, err := serve.Missing(client, config.Guest.Host, wanted...)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf(
			"the API server of the guest cluster at %s does not know %s: install the CustomResourceDefinitions first "+
				"(kubectl apply -f api/crd)", config.Guest.Host, strings.Join(missing, ", "))
	}
	return nil
}

// checkIdentity asks the guest for the operator's own name. With a wrong name the operator's admission policies would
// lock it out, and with it every change of a NodePool (G4).
func checkIdentity(ctx context.Context, config *rest.Config, want string) error {
	client, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("asking the guest cluster who this operator is: %w", err)
	}
	review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking the guest cluster at %s who this operator is: %w", config.Host, err)
	}
	if name := review.Status.UserInfo.Username; name != want {
		return fmt.Errorf("the guest cluster at %s knows this operator as %q, but --guest-user-name is %q: "+
			"give the kubeconfig of that user, or its name. The admission policies let nobody else write NodePools, "+
			"so the operator would lock itself out", config.Host, name, want)
	}
	return nil
}
