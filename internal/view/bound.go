package view

import (
	"strconv"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Bound is a limit of a pool and what counts against it. Its names in JSON are an API (U-29).
type Bound struct {
	Resource string `json:"resource"`
	Used     string `json:"used"`
	Limit    string `json:"limit"`
	Hard     bool   `json:"hard,omitempty"`
}

// Bounds returns the limits of a pool, that of nodes first.
func Bounds(s *cluster.Snapshot, pool *cluster.Pool) []Bound {
	var list []Bound
	if most, hard := pool.Limits.Nodes(); most != limit.None {
		list = append(list, Bound{Resource: resources.NameNodes, Used: strconv.FormatInt(pool.Used.Nodes, 10),
			Limit: strconv.FormatInt(most, 10), Hard: hard})
	}
	for i, limited := range pool.Limits.Limited {
		if limited {
			list = append(list, Bound{Resource: s.Names[i], Used: s.Names.FormatOne(i, pool.Used.Capacity.At(i)),
				Limit: s.Names.FormatOne(i, pool.Limits.Resources.At(i))})
		}
	}
	return list
}
