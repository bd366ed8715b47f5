package evaluator

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	serviceAccountPrefix = "system:serviceaccount:"
	groupPrefix          = "group:"
	userPrefix           = "user:"
	namespacePrefix      = "namespace:"
	accountsPrefix       = "system:serviceaccounts:" // of the group of all service accounts of a namespace
)

// entry is one parsed line of a list (H4, H8, A-11).
type entry struct {
	user, group string // the actor that it authorizes: at most one of them is set
	namespace   string // whose pods it authorizes, "" none
	home        string // the namespace that it names, "" for people
	uid         string // of home, "" for any
}

// exampleUID is the example of a namespace's UID in messages.
const exampleUID = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"

// readEntry is parseEntry for the lists of a policy. With pins, it also refuses an entry without a UID, if others may
// create a namespace of its name.
func readEntry(text string, pins bool) (entry, error) {
	read, err := parseEntry(text)
	if pins && read.loose() {
		return entry{},
			fmt.Errorf(
				"it names the namespace %s without its UID, and entryPins is Require: it must end in @UID, such as %s@%s",
				read.home, text, exampleUID)
	}
	return read, err
}

// parseEntry parses an entry. It tries these forms in order: group:NAME, user:NAME, namespace:NAME,
// system:serviceaccount:NS:NAME, NS/NAME if both are valid object names. Any other text is a user name. An entry that
// names a namespace may end in @ and the UID. There are no wildcards.
func parseEntry(text string) (entry, error) {
	if text == "" {
		return entry{}, errors.New("it must name a user, a service account, a namespace or a group")
	}
	if len(text) > maxEntry {
		return entry{}, fmt.Errorf("it must have at most %d bytes", maxEntry)
	}
	if name, found := strings.CutPrefix(text, groupPrefix); found {
		return parseGroup(name)
	}
	if name, found := strings.CutPrefix(text, userPrefix); found {
		return parseUser(name)
	}
	named, uid, pinned := strings.Cut(text, "@")
	if name, found := strings.CutPrefix(named, namespacePrefix); found {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return entry{}, errors.New("after namespace: the name of a namespace must follow")
		}
		return entry{namespace: name, home: name}.pin(uid, pinned)
	}
	if namespace, _, found := serviceAccount(named); found {
		return entry{user: named, namespace: namespace, home: namespace}.pin(uid, pinned)
	}
	if namespace, name, found := accountName(named, "/"); found {
		return entry{user: serviceAccountPrefix + namespace + ":" + name, namespace: namespace,
			home: namespace}.pin(uid, pinned)
	}
	return entry{user: text}, nil
}

// parseGroup parses what follows group:. The group of a namespace's service accounts names that namespace.
func parseGroup(text string) (entry, error) {
	if text == "" {
		return entry{}, errors.New("after group: the name of a group must follow")
	}
	named, uid, pinned := strings.Cut(text, "@")
	if home, found := strings.CutPrefix(named, accountsPrefix); found && len(validation.IsDNS1123Label(home)) == 0 {
		return entry{group: named, home: home}.pin(uid, pinned)
	}
	return entry{group: text}, nil
}

// parseUser parses what follows user:. A service account is authorized only as actor, without the pods of its
// namespace. The entry names that namespace all the same.
func parseUser(text string) (entry, error) {
	if text == "" {
		return entry{}, errors.New("after user: the name of a user must follow")
	}
	named, uid, pinned := strings.Cut(text, "@")
	if home, _, found := serviceAccount(named); found {
		return entry{user: named, home: home}.pin(uid, pinned)
	}
	return entry{user: text}, nil
}

// pin adds what follows the @, which must be a UID in the format of Kubernetes.
func (e entry) pin(uid string, given bool) (entry, error) {
	if given && !isUID(uid) {
		return entry{},
			fmt.Errorf(
				"after @ the UID of the namespace %s must follow, such as %s; for a user whose name has an @ write user: before it",
				e.home, exampleUID)
	}
	e.uid = uid
	return e, nil
}

// isUID reports whether a text is a UUID in the format of Kubernetes.
func isUID(text string) bool {
	if len(text) != len(exampleUID) {
		return false
	}
	for i, c := range []byte(text) {
		switch {
		case exampleUID[i] == '-' && c != '-':
			return false
		case exampleUID[i] != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return false
		}
	}
	return true
}

// loose reports whether anyone who may create a namespace of its name could gain the entry.
func (e entry) loose() bool { return e.home != "" && e.uid == "" && !reserved(e.home) }

// reserved reports whether OpenShift's project request refuses the name, because it belongs to the platform.
func reserved(namespace string) bool {
	return strings.HasPrefix(namespace, "openshift-") || strings.HasPrefix(namespace, "kube-")
}

// serviceAccount splits the user name of a service account.
func serviceAccount(user string) (namespace, name string, found bool) {
	rest, found := strings.CutPrefix(user, serviceAccountPrefix)
	if !found {
		return "", "", false
	}
	return accountName(rest, ":")
}

func accountName(text, separator string) (namespace, name string, found bool) {
	namespace, name, found = strings.Cut(text, separator)
	if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", "", false
	}
	return namespace, name, true
}

// spell returns the entry that authorizes a user: the opposite of parseEntry.
func spell(user string) string {
	if namespace, name, found := serviceAccount(user); found {
		return namespace + "/" + name
	}
	if read, err := parseEntry(user); err != nil || read != (entry{user: user}) {
		return userPrefix + user
	}
	return user
}

// authorized holds the lists of one group: for each authorized name, its entries in the order of the lists.
type authorized struct {
	users      map[string][]grant
	people     map[string]bool // those of users that are not service accounts
	groups     map[string][]grant
	namespaces map[string][]grant
}

// grant is an entry that authorizes a name, if its namespace has the right UID. text is the entry as written, so that
// its use can be counted (H19).
type grant struct{ text, home, uid string }

func newAuthorized() authorized {
	return authorized{users: map[string][]grant{}, people: map[string]bool{}, groups: map[string][]grant{},
		namespaces: map[string][]grant{}}
}

// add adds an entry to the lists.
func (a authorized) add(text string, e entry) {
	keep := func(list map[string][]grant, key string) {
		if key != "" {
			list[key] = append(list[key], grant{text: text, home: e.home, uid: e.uid})
		}
	}
	keep(a.users, e.user)
	keep(a.groups, e.group)
	keep(a.namespaces, e.namespace)
	if _, _, account := serviceAccount(e.user); e.user != "" && !account {
		a.people[e.user] = true
	}
}

// actor returns the entry that authorizes the sender of the request to place pods, "" if there is none.
func (e *evaluation) actor(g *group) string {
	if text := e.first(g.users[e.request.User.Name]); text != "" {
		return text
	}
	return e.groupOf(g)
}

// person returns the entry that authorizes the sender of the request, "" if there is none. It ignores entries for
// service accounts.
func (e *evaluation) person(g *group) string {
	name := e.request.User.Name
	if g.people[name] {
		return e.first(g.users[name])
	}
	if _, _, account := serviceAccount(name); account {
		return ""
	}
	return e.groupOf(g)
}

func (e *evaluation) groupOf(g *group) string {
	for _, group := range e.request.User.Groups {
		if text := e.first(g.groups[group]); text != "" {
			return text
		}
	}
	return ""
}

// occupant returns the entry that authorizes the namespace of the request to have pods there, "" if there is none.
func (e *evaluation) occupant(g *group) string { return e.first(g.namespaces[e.request.Namespace]) }

// first returns the first entry that holds. It notes in stale those whose namespace has another UID now.
func (e *evaluation) first(grants []grant) string {
	for _, g := range grants {
		holds, known := e.holds(g)
		if holds {
			return g.text
		}
		if mismatch := (stale{grant: g, have: known}); known != "" && !slices.Contains(e.stale, mismatch) {
			e.stale = append(e.stale, mismatch)
		}
	}
	return ""
}

// stale is an entry whose namespace has another UID now.
type stale struct {
	grant
	have string
}

// holds reports whether an entry means the current namespace of its name; if not, instead is the UID of the current
// one. If the namespace cannot be read, an entry without a UID holds, and one with a UID does not.
func (e *evaluation) holds(g grant) (holds bool, instead string) {
	if g.home == "" {
		return true, ""
	}
	if e.cluster.Namespace == nil {
		return g.uid == "", ""
	}
	uid, exists, err := e.namespace(g.home)
	switch {
	case err != nil:
		return g.uid == "", ""
	case !exists:
		return false, ""
	case g.uid == "" || g.uid == uid:
		return true, ""
	}
	return false, uid
}

// namespace asks for a namespace only once, for all groups.
func (e *evaluation) namespace(name string) (string, bool, error) {
	for _, n := range e.namespaces {
		if n.name == name {
			return n.uid, n.exists, n.err
		}
	}
	n := namespaceSeen{name: name}
	n.uid, n.exists, n.err = e.cluster.Namespace(name)
	e.namespaces = append(e.namespaces, n)
	return n.uid, n.exists, n.err
}

// namespaceSeen is the answer about a namespace.
type namespaceSeen struct {
	name, uid string
	exists    bool
	err       error
}
