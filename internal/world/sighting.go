package world

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sighting is which object was seen last under a name, and in which state.
type sighting struct {
	uid      types.UID
	version  uint64
	numbered bool // version is a number and can be compared
}

func sight(obj client.Object) sighting {
	version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	return sighting{uid: obj.GetUID(), version: version, numbered: err == nil}
}

// before reports whether the state in s is surely older than that in other. Both are of objects with one name, of
// which no two exist at a time; so it holds across UIDs too.
func (s sighting) before(other sighting) bool {
	return s.numbered && other.numbered && s.version < other.version
}

// sameObject reports whether both are sightings of one object, as far as is known.
func (s sighting) sameObject(other sighting) bool {
	return s.uid == other.uid || s.uid == "" || other.uid == ""
}

// graveyard remembers the UIDs of deleted objects, so that an event which comes after the deletion does not bring one
// back. It forgets after one to two times graveTime, by when any late event has come.
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

// accept decides on a new state of an object. known is what was seen last under its name, nil for nothing. replaced is
// true when the object takes the place of another one of that name, which is gone by that.
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

// ends decides on a deletion: whether what is known under the name is gone by it. A deleted object that came later
// than the known one shows that the known one is gone as well.
func (s *Store) ends(known *sighting, deleted sighting) bool {
	s.graves.bury(deleted.uid, s.config.Now())
	if known != nil && (known.sameObject(deleted) || known.before(deleted)) {
		s.graves.bury(known.uid, s.config.Now())
		return true
	}
	return false
}

// counts decides on a state of an object of one of the kinds of which only the last one is kept, or on its deletion: seen has
// what was seen last, by kind, namespace and name.
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
