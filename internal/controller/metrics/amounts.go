package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Amounts is a gauge with the labels resource_type and nodepool, in the resource's own unit, cpu in cores. It
// remembers its series, because a pool is exported again and again and mostly nothing has changed. It is safe for
// concurrent use.
type Amounts struct {
	*prometheus.GaugeVec
	mu    sync.Mutex
	shown map[string]map[string]prometheus.Gauge // by pool, then resource
}

func newAmounts(vec *prometheus.GaugeVec) *Amounts {
	return &Amounts{GaugeVec: vec, shown: map[string]map[string]prometheus.Gauge{}}
}

// Show replaces the amounts of a pool, by resource; amounts is empty if the pool is gone.
func (a *Amounts) Show(pool string, amounts map[string]float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	shown := a.shown[pool]
	for resource := range shown {
		if _, stays := amounts[resource]; !stays {
			a.DeleteLabelValues(resource, pool)
			delete(shown, resource)
		}
	}
	if len(amounts) == 0 {
		delete(a.shown, pool)
		return
	}
	if shown == nil {
		shown = map[string]prometheus.Gauge{}
		a.shown[pool] = shown
	}
	for resource, amount := range amounts {
		if shown[resource] == nil {
			shown[resource] = a.WithLabelValues(resource, pool)
		}
		shown[resource].Set(amount)
	}
}
