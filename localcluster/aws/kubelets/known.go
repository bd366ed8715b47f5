package kubelets

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// known caches what never changes.
type known struct {
	mu     sync.Mutex
	types  map[types.InstanceType]types.InstanceTypeInfo
	images map[string]types.Image
}

func (k *known) instanceType(ctx context.Context, client *ec2.Client,
	name types.InstanceType) (types.InstanceTypeInfo, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if info, has := k.types[name]; has {
		return info, nil
	}
	out, err := client.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{
		InstanceTypes: []types.InstanceType{name},
	})
	if err != nil {
		return types.InstanceTypeInfo{}, err
	}
	if len(out.InstanceTypes) != 1 {
		return types.InstanceTypeInfo{}, fmt.Errorf("instance type %q: %d answers", name, len(out.InstanceTypes))
	}
	if k.types == nil {
		k.types = map[types.InstanceType]types.InstanceTypeInfo{}
	}
	k.types[name] = out.InstanceTypes[0]
	return out.InstanceTypes[0], nil
}

func (k *known) image(ctx context.Context, client *ec2.Client, id string) (types.Image, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if image, has := k.images[id]; has {
		return image, nil
	}
	out, err := client.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{id}})
	if err != nil {
		return types.Image{}, err
	}
	if len(out.Images) != 1 {
		return types.Image{}, fmt.Errorf("image %s: %d answers", id, len(out.Images))
	}
	if k.images == nil {
		k.images = map[string]types.Image{}
	}
	k.images[id] = out.Images[0]
	return out.Images[0], nil
}
