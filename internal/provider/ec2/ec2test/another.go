package ec2test

import (
	"fmt"
	"maps"
	"time"
)

// Another returns the endpoint of another account. It sells the same types at the same prices, or only the given
// types. It shares everything immutable, so that thousands of endpoints cost no more than their machines.
func (s *Server) Another(o Options, types ...string) (*Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.Region = s.region
	other := blank(o)
	other.types, other.zonesOf = s.types, s.zonesOf
	if len(types) > 0 {
		other.types, other.zonesOf = maps.Clone(s.types), maps.Clone(s.zonesOf)
		keep := map[string]bool{}
		for _, kind := range types {
			if _, sold := s.types[kind]; !sold || len(s.zonesOf[kind]) == 0 {
				return nil, fmt.Errorf("type %q is not sold; there are %d others", kind, len(s.types))
			}
			keep[kind] = true
		}
		for kind := range s.types {
			if !keep[kind] {
				delete(other.types, kind)
				delete(other.zonesOf, kind)
			}
		}
	}
	maps.Copy(other.prices, s.prices)
	maps.Copy(other.spots, s.spots)
	return other, other.setFaults(o.Faults)
}

// Visible returns the time from which EC2 shows the instance.
func (i *Instance) Visible() time.Time { return i.visible }
