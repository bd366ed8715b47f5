package evaluator

// PinState says what an entry that names a namespace means now. The set is closed: metrics have it as a label.
type PinState string

const (
	// Pinned: the namespace has the UID of the entry.
	Pinned PinState = "pinned"
	// Reserved: the entry has no UID, but its namespace has a name of the platform, which projects cannot take.
	Reserved PinState = "reserved"
	// Unpinned: the entry has no UID, so it holds for any namespace of that name.
	Unpinned PinState = "unpinned"
	// Dangling: there is no namespace of that name. Whoever creates one gains the entry, unless it has a UID.
	Dangling PinState = "dangling"
	// Replaced: the namespace of that name has another UID than the entry. The entry authorizes nobody.
	Replaced PinState = "replaced"
)

// PinStates returns all states.
func PinStates() []PinState { return []PinState{Pinned, Reserved, Unpinned, Dangling, Replaced} }

// Pin is an entry that names a namespace.
type Pin struct {
	Entry
	// Namespace is the name of the namespace. UID is the UID in the entry, "" if it has none.
	Namespace, UID string
	// Now is the namespace's current UID, "" if there is no such namespace.
	Now   string
	State PinState
}

// Fine reports whether the entry needs nobody's attention. Dangling entries for the platform's namespaces are fine: a
// list may name parts of the platform that a cluster does not have.
func (p Pin) Fine() bool {
	return p.State == Pinned || p.State == Reserved || p.State == Dangling && reserved(p.Namespace)
}

// Pins returns the entries that name a namespace, with their current meaning. It covers all groups, whatever their
// mode, in the order of the lists. namespace is the port of [Cluster]; Pins returns its error.
func (p *Policy) Pins(namespace func(name string) (uid string, exists bool, err error)) ([]Pin, error) {
	if p == nil {
		return nil, nil
	}
	var pins []Pin
	for _, g := range p.all {
		for _, e := range g.entries {
			if e.read.home == "" {
				continue
			}
			uid, exists, err := namespace(e.read.home)
			if err != nil {
				return nil, err
			}
			pin := Pin{Entry: e, Namespace: e.read.home, UID: e.read.uid, Now: uid}
			switch {
			case !exists:
				pin.State, pin.Now = Dangling, ""
			case e.read.uid != "" && e.read.uid != uid:
				pin.State = Replaced
			case e.read.uid != "":
				pin.State = Pinned
			case reserved(e.read.home):
				pin.State = Reserved
			default:
				pin.State = Unpinned
			}
			pins = append(pins, pin)
		}
	}
	return pins, nil
}
