package account

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

func encode(text []byte) string { return base64.StdEncoding.EncodeToString(text) }

// release is a kind of image, with the public parameter that names the newest one.
type release struct {
	name, parameter string
	gib             int // of its root volume; Bottlerocket's has no pods and no images
}

func releases() []release {
	return []release{
		{"amazon-eks-node-al2023-MACHINE-standard-VERSION-vDAY",
			"/aws/service/eks/optimized-ami/VERSION/amazon-linux-2023/MACHINE/standard/recommended/image_id", 20},
		{"amazon-eks-node-al2023-MACHINE-nvidia-VERSION-vDAY",
			"/aws/service/eks/optimized-ami/VERSION/amazon-linux-2023/MACHINE/nvidia/recommended/image_id", 20},
		{"bottlerocket-aws-k8s-VERSION-MACHINE-v1.50.0-DAY",
			"/aws/service/bottlerocket/aws-k8s-VERSION/MACHINE/latest/image_id", 2},
	}
}

// Release publishes new images of every kind for the cluster's version, as Amazon does every week or two, and returns
// them. The public parameters name them from now on; older images stay.
func (a *Account) Release(day time.Time) []ec2test.Image {
	var images []ec2test.Image
	for _, kind := range releases() {
		for _, machine := range []string{"x86_64", "arm64"} {
			fill := strings.NewReplacer("VERSION", a.Version(), "MACHINE", machine, "DAY", day.Format("20060102"))
			image := a.AddImage(ec2test.Image{Name: fill.Replace(kind.name), Architecture: machine, Created: day,
				SnapshotGiB: kind.gib})
			a.SetParameter(fill.Replace(kind.parameter), image.ID)
			images = append(images, image)
		}
	}
	return images
}
