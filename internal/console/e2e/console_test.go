package e2e

import (
	"testing"
)

func TestU08_Pictures(t *testing.T) {
	s := newStand(t, generated())
	b := s.opened(1440, 900)
	for name, address := range map[string]string{"overview": "/", "nodes": "/nodes", "table": "/nodes?as=table", "node": "/nodes/ip-10-0-0-30", "pods": "/pods", "pod": "/pods/shop/huge", "pools": "/pools", "pool": "/pools/gpu", "cause": "/pods?cause=HardLimitNodes&pool=gpu"} {
		b.at(address)
		b.until(`!document.body.innerText.includes("Asking the controller")`)
		b.picture(name)
	}
}
