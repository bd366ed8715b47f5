package translate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

func TestAmountsAreCutAndRoundedUp(t *testing.T) { // P-06
	t.Parallel()
	for _, row := range []struct {
		name, quantity string
		up, down       int64
	}{
		{"cpu", "1500m", 1500, 1500},
		{"cpu", "1u", 1, 0},
		{"cpu", "2.0001", 2001, 2000},
		{"memory", "1Gi", 1 << 30, 1 << 30},
		{"memory", "1500m", 2, 1},
		{"nodes", "2500m", 3, 2},
		{"cpu", "-1", 0, 0},
		{"cpu", "1000000000000000000", maxAmount, maxAmount},
		{"memory", "1000E", maxAmount, maxAmount},
		{"pods", "110", 110, 110},
	} {
		quantity := resource.MustParse(row.quantity)
		name := corev1.ResourceName(row.name)
		if up := Amounts(corev1.ResourceList{name: quantity})[row.name]; up != row.up {
			t.Errorf("%s %s: %d base units; want %d", row.quantity, row.name, up, row.up)
		}
		if down := amountDown(name, quantity); down != row.down {
			t.Errorf("%s %s as a limit: %d base units; want %d", row.quantity, row.name, down, row.down)
		}
	}
}

func TestResourceListsThereAndBack(t *testing.T) {
	t.Parallel()
	list := requests("cpu", "1500m", "memory", "3Gi", "nvidia.com/gpu", "2", "hugepages-2Mi", "4Mi",
		"ephemeral-storage", "10Gi").Requests
	space := resources.NewSpace()
	back := ResourceList(space.Names(), nil)
	if len(back) != 0 {
		t.Errorf("nothing becomes %v", back)
	}
	v := vector(space, list)
	back = ResourceList(space.Names(), v)
	for name, want := range list {
		if got := back[name]; got.String() != want.String() {
			t.Errorf("%s: %s becomes %s", name, want.String(), got.String())
		}
	}
	if len(back) != len(list) {
		t.Errorf("%d resources become %d", len(list), len(back))
	}
}
