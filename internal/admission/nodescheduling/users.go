package nodescheduling

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	serviceAccountPrefix = "system:serviceaccount:"
	groupPrefix          = "group:"
	userPrefix           = "user:"
)

// entry is one line of a list, read (H4, H8). One of user and group is set; namespace only for a service account, whose
// user is then the name that it logs in with.
type entry struct {
	user, group, namespace string
}

// parseEntry reads an entry. The rules, in this order: group:NAME, user:NAME, system:serviceaccount:NS:NAME, NS/NAME where
// both are names of objects, and any other text is a user name as it is. There are no wildcards.
func parseEntry(text string) (entry, error) {
	if text == "" {
		return entry{}, errors.New("it must name a user, a service account or a group")
	}
	if len(text) > maxEntry {
		return entry{}, fmt.Errorf("it must have at most %d bytes", maxEntry)
	}
	if name, found := strings.CutPrefix(text, groupPrefix); found {
		if name == "" {
			return entry{}, errors.New("after group: the name of a group must follow")
		}
		return entry{group: name}, nil
	}
	if name, found := strings.CutPrefix(text, userPrefix); found {
		if name == "" {
			return entry{}, errors.New("after user: the name of a user must follow")
		}
		return entry{user: name}, nil
	}
	if namespace, _, found := serviceAccount(text); found {
		return entry{user: text, namespace: namespace}, nil
	}
	if namespace, name, found := accountName(text, "/"); found {
		return entry{user: serviceAccountPrefix + namespace + ":" + name, namespace: namespace}, nil
	}
	return entry{user: text}, nil
}

// serviceAccount takes the name apart that a service account logs in with.
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

// spell is the entry that authorizes a user: the opposite of parseEntry.
func spell(user string) string {
	if namespace, name, found := serviceAccount(user); found {
		return namespace + "/" + name
	}
	if read, err := parseEntry(user); err != nil || read != (entry{user: user}) {
		return userPrefix + user
	}
	return user
}

// authorized are the lists of one group, by what they authorize. Values are the entries as they are written, so that
// their use can be counted (H19).
type authorized struct {
	users      map[string]string
	people     map[string]bool // of users, those that an entry names as users and not as service accounts
	groups     map[string]string
	namespaces map[string]string
}

func newAuthorized() authorized {
	return authorized{users: map[string]string{}, people: map[string]bool{}, groups: map[string]string{}, namespaces: map[string]string{}}
}

// add takes an entry into the lists; of two that say the same the first stays.
func (a authorized) add(text string, e entry) {
	keep := func(list map[string]string, key string) {
		if _, found := list[key]; key != "" && !found {
			list[key] = text
		}
	}
	keep(a.users, e.user)
	keep(a.groups, e.group)
	keep(a.namespaces, e.namespace)
	if _, _, account := serviceAccount(e.user); e.user != "" && !account {
		a.people[e.user] = true
	}
}

// actor finds the entry that authorizes a user to place pods, "" if there is none.
func (a authorized) actor(user User) string {
	if text, found := a.users[user.Name]; found {
		return text
	}
	return a.groupOf(user)
}

// person finds the entry that authorizes a user by another name than that of a service account, "" if there is none.
func (a authorized) person(user User) string {
	if a.people[user.Name] {
		return a.users[user.Name]
	}
	if _, _, account := serviceAccount(user.Name); account {
		return ""
	}
	return a.groupOf(user)
}

func (a authorized) groupOf(user User) string {
	for _, group := range user.Groups {
		if text, found := a.groups[group]; found {
			return text
		}
	}
	return ""
}
