package dump

import "maps"

func (w *walk) ref(r *refRecord) {
	w.name(kindNamespace, &r.Namespace)
	w.name(kindPod, &r.Name)
	w.name(kindUID, &r.UID)
}

// plan visits the names of a plan, except those in sentences.
func (w *walk) plan(p *planRecord) {
	for i := range p.Launches {
		w.launch(&p.Launches[i])
	}
	for i := range p.Nominations {
		w.ref(&p.Nominations[i].Pod)
		w.name(kindNode, &p.Nominations[i].Node)
	}
	for i := range p.Unplaced {
		w.unplaced(&p.Unplaced[i])
	}
	for i := range p.Room {
		w.ref(&p.Room[i].Pod)
		w.name(kindNode, &p.Room[i].Node)
	}
	for i := range p.NoRoom {
		w.unplaced(&p.NoRoom[i])
	}
	for i := range p.Removes {
		r := &p.Removes[i]
		w.name(kindNode, &r.Claim)
		w.name(kindUID, &r.ClaimUID)
		w.name(kindNode, &r.Node)
		w.name(kindPool, &r.Pool)
	}
	for i := range p.Stays {
		w.name(kindNode, &p.Stays[i].Claim)
		w.name(kindUID, &p.Stays[i].ClaimUID)
		if p.Stays[i].Homeless != nil {
			w.unplaced(p.Stays[i].Homeless)
		}
	}
	held := map[string]int{}
	for pool, count := range p.Held {
		w.name(kindPool, &pool)
		held[pool] = count
	}
	p.Held = emptied(held)
	w.names(kindUID, p.Order)
}

func (w *walk) unplaced(u *unplacedRecord) {
	w.ref(&u.Pod)
	for i := range u.Pools {
		w.name(kindPool, &u.Pools[i].Pool)
	}
}

func (w *walk) launch(l *launchRecord) {
	w.name(kindPool, &l.Pool)
	w.name(kindUID, &l.PoolUID)
	w.requirements(l.Requirements)
	relaxed := maps.Clone(l.Relaxed)
	l.Relaxed = nil
	for key, count := range relaxed {
		w.key(&key)
		if l.Relaxed == nil {
			l.Relaxed = map[string]int{}
		}
		l.Relaxed[key] = count
	}
	w.labels(&l.Labels)
	for i := range l.Pods {
		w.ref(&l.Pods[i])
	}
	for i := range l.Room {
		w.ref(&l.Room[i])
	}
	w.names(kindNode, l.Replaces)
	w.drivers(l.Drivers)
	w.value("topology.kubernetes.io/zone", &l.Cheapest.Zone)
	w.name(kindCommitment, &l.Cheapest.Commitment)
	for i := range l.Zones {
		w.value("topology.kubernetes.io/zone", &l.Zones[i])
	}
}
