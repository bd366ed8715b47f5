package world

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sighting identifies the object that was last seen under a name, and its state.
type sighting struct {
	uid      types.UID
	version  uint64
	numbered bool // version is a number and can be compared
}

func sight(obj client.Object) sighting {
	version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	return sighting{uid: obj.GetUID(), version: version, numbered: err == nil}
}

// before reports whether s is surely older than other. Both have the same name, and only one object of a name exists
// at a time. So it holds across UIDs too.
func (s sighting) before(other sighting) bool {
	return s.numbered && other.numbered && s.version < other.version
}

// sameObject reports whether both are sightings of one object, as far as is known.
func (s sighting) sameObject(other sighting) bool {
	return s.uid == other.uid || s.uid == "" || other.uid == ""
}

// graveyard remembers the UIDs of deleted objects, so that a late event does not bring one back. It forgets them after
// one to two times graveTime, when no more late events can come.
type graveyard struct {
	recent, older map[types.UID]struct{}
	since         time.Time // when recent was begun
}

const graveTime = 10 * time.Minute

func (g *graveyard) bury(uid types.UID, now time.Time) {
	if uid == "" {
		return
	}
	if g.recent == nil || now.Sub(g.since) > graveTime {
		g.older, g.recent, g.since = g.recent, map[types.UID]struct{}{}, now
	}
	g.recent[uid] = struct{}{}
}

func (g *graveyard) holds(uid types.UID) bool {
	if uid == "" {
		return false
	}
	_, recent := g.recent[uid]
	_, older := g.older[uid]
	return recent || older
}

// accept decides on a new state of an object. known is what was last seen under its name, nil for nothing. replaced is
// true when the object takes the place of another one of that name; the other one is then gone.
func (s *Store) accept(known *sighting, fresh sighting) (accepted, replaced bool) {
	switch {
	case s.graves.holds(fresh.uid):
		return false, false
	case known == nil:
		return true, false
	case fresh.before(*known):
		return false, false
	case known.uid != fresh.uid:
		s.graves.bury(known.uid, s.config.Now())
		return true, true
	}
	return true, false
}

// ends decides on a deletion: it reports whether the known object of that name is gone. If the deleted object is newer
// than the known one, the known one is gone too.
func (s *Store) ends(known *sighting, deleted sighting) bool {
	s.graves.bury(deleted.uid, s.config.Now())
	if known != nil && (known.sameObject(deleted) || known.before(deleted)) {
		s.graves.bury(known.uid, s.config.Now())
		return true
	}
	return false
}

// counts decides on a new state or the deletion of an object whose kind keeps only the last state. seen has what was
// last seen, by kind, namespace and name.
func (s *Store) counts(seen map[string]*sighting, key string, obj client.Object, gone bool) bool {
	known, fresh := seen[key], sight(obj)
	if gone {
		ended := s.ends(known, fresh)
		if ended {
			delete(seen, key)
		}
		return ended
	}
	accepted, _ := s.accept(known, fresh)
	if accepted {
		seen[key] = &fresh
	}
	return accepted
}
