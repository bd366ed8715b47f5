// Package top is the terminal program behind joinerctl top (U-05). Update and View are functions of the last look, of
// keys and of the size, so frames can be tested without a terminal.
package top

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// Look is the state of a cluster at one time.
type Look struct {
	Top whatif.Top
	At  time.Time
	// Took is how long the look took.
	Took time.Duration
	// Explain returns what explain says about an object, as text.
	Explain func(whatif.About) string
}

// Settings configure a run.
type Settings struct {
	// Every is the pause between two looks.
	Every time.Duration
	// Paint allows colours and other emphasis.
	Paint bool
	// Look looks again.
	Look func() (Look, error)
}

// screen is one of the views.
type screen int

const (
	nodes screen = iota
	waiting
	pools
	detail
	help
)

// Model is the state of the program. Use [New].
type Model struct {
	settings      Settings
	look          Look
	now           time.Time
	failure       string // why the last look failed; "" if it did not
	width, height int

	screen  screen
	back    []screen
	cursors map[screen]int
	filter  string
	typing  bool
	sort    string
	group   string
	amounts bool

	// about is the object of the detail view, text what explain says about it, and pods its pods.
	about whatif.About
	text  string
	pods  []string
}

// New returns a Model of a first look, with nodes in the given order.
func New(settings Settings, first Look, sort string) Model {
	return Model{settings: settings, look: first, now: first.At, sort: sort, width: 80, height: 24,
		cursors: map[screen]int{}}
}

// Messages of the program to itself.
type (
	looked    Look
	failed    struct{ err error }
	clock     time.Time
	again     struct{}
	explained struct {
		about whatif.About
		text  string
	}
)

// tick is how often the clock on the screen advances.
const tick = time.Second

// Init waits for the next look, and for the clock.
func (m Model) Init() tea.Cmd { return tea.Batch(m.later(), ticking()) }

func ticking() tea.Cmd { return tea.Tick(tick, func(t time.Time) tea.Msg { return clock(t) }) }

// rest is how many times as long as a look the pause after it is, so that looking takes at most a tenth of the time
// (U-05).
const rest = 9

// Pause returns how long to wait after a look that took that long, when every was asked for.
func Pause(every, took time.Duration) time.Duration { return max(every, rest*took) }

// every returns the time from the end of a look to the next one.
func (m Model) every() time.Duration { return Pause(m.settings.Every, m.look.Took) }

func (m Model) later() tea.Cmd {
	return tea.Tick(m.every(), func(time.Time) tea.Msg { return again{} })
}

func (m Model) fetch() tea.Msg {
	look, err := m.settings.Look()
	if err != nil {
		return failed{err}
	}
	return looked(look)
}

// explain asks again for the text of the detail view.
func (m Model) explain() tea.Cmd {
	if m.screen != detail || m.look.Explain == nil {
		return nil
	}
	about, say := m.about, m.look.Explain
	return func() tea.Msg { return explained{about, say(about)} }
}

// Update returns the next Model.
func (m Model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
	case clock:
		m.now = time.Time(message)
		return m, ticking()
	case again:
		return m, m.fetch
	case failed:
		m.failure = strings.Join(strings.Fields(message.err.Error()), " ")
		return m, m.later()
	case looked:
		m.look, m.failure = Look(message), ""
		if m.now.Before(m.look.At) {
			m.now = m.look.At
		}
		m.pods = m.podsOf(m.about)
		return m, tea.Batch(m.later(), m.explain())
	case explained:
		if message.about == m.about {
			m.text = message.text
		}
	case tea.KeyPressMsg:
		return m.key(message)
	}
	return m, nil
}

// key handles a key.
func (m Model) key(key tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	name := key.String()
	m.cursors = copied(m.cursors)
	switch {
	case name == "ctrl+c":
		return m, tea.Quit
	case m.typing:
		return m.typed(name, key.Text), nil
	}
	switch name {
	case "q":
		return m, tea.Quit
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-m.room())
	case "pgdown", "space":
		m.move(m.room())
	case "home":
		m.move(-len(m.lines()))
	case "end":
		m.move(len(m.lines()))
	case "esc", "left":
		m.leave()
	case "enter", "right", "p":
		return m.enter()
	case "/":
		m.typing = m.screen == nodes
	case "s":
		m.sort = next(m.sort, whatif.SortPrice, whatif.SortFree, whatif.SortAge, whatif.SortName)
	case "g":
		m.group = next(m.group, "", "pool", "zone", "type")
	case "r":
		m.amounts = !m.amounts
	case "n":
		m.screen, m.back = nodes, nil
	case "w":
		m.screen, m.back = waiting, nil
	case "o":
		m.screen, m.back = pools, nil
	case "?":
		if m.screen != help {
			m.open(help)
		}
	}
	return m, nil
}

func copied(cursors map[screen]int) map[screen]int {
	own := map[screen]int{}
	for s, at := range cursors {
		own[s] = at
	}
	return own
}

func next(now string, list ...string) string {
	return list[(slices.Index(list, now)+1)%len(list)]
}

// typed changes the filter by a key.
func (m Model) typed(name, text string) Model {
	switch name {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		letters := []rune(m.filter)
		m.filter = string(letters[:max(0, len(letters)-1)])
	default:
		m.filter += text
	}
	m.cursors[nodes] = 0
	return m
}

func (m *Model) move(by int) {
	m.cursors[m.screen] = min(max(m.cursors[m.screen]+by, 0), max(0, m.last()))
}

func (m *Model) open(to screen) {
	m.back = append(slices.Clone(m.back), m.screen)
	m.screen, m.cursors[to] = to, 0
}

// leave returns to the previous screen. On the first one it goes to the nodes and ends the filter.
func (m *Model) leave() {
	if len(m.back) == 0 {
		m.screen, m.filter = nodes, ""
		return
	}
	last := len(m.back) - 1
	m.screen, m.back = m.back[last], m.back[:last:last]
}

// enter shows more about the row under the cursor.
func (m Model) enter() (tea.Model, tea.Cmd) {
	at := m.cursors[m.screen]
	switch m.screen {
	case nodes:
		list := m.nodes()
		if at >= len(list) {
			return m, nil
		}
		m.about = whatif.About{Kind: "Node", Name: list[at].Name}
	case waiting:
		if at >= len(m.look.Top.Waiting) {
			return m, nil
		}
		m.about = m.look.Top.Waiting[at].Example
	case pools:
		if at >= len(m.look.Top.Pools) {
			return m, nil
		}
		m.about = whatif.About{Kind: "NodePool", Name: m.look.Top.Pools[at].Name}
	default:
		return m, nil
	}
	m.text, m.pods = "", m.podsOf(m.about)
	m.open(detail)
	return m, m.explain()
}

// podsOf returns the pods of a node, or those that wait for the same reason as a pod.
func (m Model) podsOf(about whatif.About) []string {
	switch about.Kind {
	case "Node":
		for _, n := range m.look.Top.Items {
			if n.Name == about.Name {
				return n.PodNames()
			}
		}
	case "Pod":
		for _, w := range m.look.Top.Waiting {
			if slices.Contains(w.Pods, about.Namespace+"/"+about.Name) {
				return w.Pods
			}
		}
	}
	return nil
}

// nodes returns the nodes that match the filter, sorted, group by group.
func (m Model) nodes() []whatif.TopNode {
	var list []whatif.TopNode
	for _, n := range m.look.Top.Items {
		text := strings.Join([]string{n.Name, n.Pool, n.Type(), n.Zone(), n.Capacity(), m.look.Top.What(n)}, " ")
		if strings.Contains(strings.ToLower(text), strings.ToLower(m.filter)) {
			list = append(list, n)
		}
	}
	whatif.SortNodes(list, m.sort)
	if m.group != "" {
		slices.SortStableFunc(list, func(a, b whatif.TopNode) int {
			return strings.Compare(m.groupOf(a), m.groupOf(b))
		})
	}
	return list
}

func (m Model) groupOf(n whatif.TopNode) string {
	switch m.group {
	case "pool":
		if n.Pool == "" {
			return "no pool"
		}
		return n.Pool
	case "zone":
		return n.Zone()
	case "type":
		return n.Type()
	}
	return ""
}
