package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// Smallest screen for the views.
const (
	leastWidth  = 60
	leastHeight = 15
)

// above is the number of lines over the rows of a view: who leads, the nodes' totals, counts, and the title.
const above = 4

// whatLeast is the least width of the last column; other columns are dropped first.
const whatLeast = 24

// barsFrom is the least width of a screen with bars.
const barsFrom = 110

// View returns the screen. It carries its own terminal modes, so none stay on when the program ends.
func (m Model) View() tea.View {
	v := tea.NewView(m.Frame())
	v.AltScreen = true
	return v
}

// Frame returns the screen as text: as many lines as it is high, none longer than it is wide.
func (m Model) Frame() string {
	var lines []string
	if m.width < leastWidth || m.height < leastHeight {
		lines = m.small()
	} else {
		lines = append(lines, m.heading(), m.look.Top.Sum(), m.look.Top.Counts(), m.emphasis(m.title()))
		lines = append(lines, m.visible()...)
		for len(lines) < m.height-1 {
			lines = append(lines, "")
		}
		lines = append(lines[:m.height-1], m.keys())
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(ansi.Truncate(line, m.width, "…"), " ")
	}
	return strings.Join(lines[:min(len(lines), max(m.height, 1))], "\n")
}

// heading returns the line with who leads and, at the right, when the data was read.
func (m Model) heading() string {
	right := m.look.At.UTC().Format("15:04:05") + "  every " + m.every().Round(time.Second).String()
	if m.failure != "" || m.now.Sub(m.look.At) > m.every()+m.look.Took+staleAfter {
		right = "stale " + m.now.Sub(m.look.At).Round(time.Second).String()
		if m.failure != "" {
			right += ": " + ansi.Truncate(m.failure, m.width/2, "…")
		}
		right = m.emphasis(right)
	}
	room := m.width - ansi.StringWidth(right) - 2
	left := ansi.Truncate(m.look.Top.Heading(), room, "…")
	return left + strings.Repeat(" ", max(0, m.width-ansi.StringWidth(left)-ansi.StringWidth(right))) + right
}

// staleAfter is how late a look may be before the data is called stale.
const staleAfter = 10 * time.Second

// title names the view.
func (m Model) title() string {
	switch m.screen {
	case waiting:
		return "── waiting pods by cause ──"
	case pools:
		return "── pools ──"
	case detail:
		return "── " + strings.ToLower(m.about.Kind) + " " + strings.TrimPrefix(m.about.Namespace+"/"+m.about.Name,
			"/") +
			" ──"
	case help:
		return "── keys ──"
	}
	text := "── nodes by " + m.sort
	if m.group != "" {
		text += ", in groups by " + m.group
	}
	if m.filter != "" || m.typing {
		text += ", with /" + m.filter
		if m.typing {
			text += "_"
		}
	}
	return text + " ──"
}

// keys returns the keys that work on this screen.
func (m Model) keys() string {
	switch {
	case m.typing:
		return "type what the rows are to have   enter keep   esc all nodes"
	case m.screen == nodes:
		return "↑↓ node  enter explain  / filter  s sort  g group  r amounts  w waiting  o pools  ? help  q quit"
	case m.screen == detail, m.screen == help:
		return "↑↓ scroll  esc back  n nodes  w waiting  o pools  ? help  q quit"
	}
	return "↑↓ row  enter explain  esc back  n nodes  w waiting  o pools  ? help  q quit"
}

// emphasis highlights a text, if wanted. The text must make sense without it.
func (m Model) emphasis(text string) string {
	if !m.settings.Paint {
		return text
	}
	return ansi.NewStyle().Bold().Styled(text)
}

// line is a row of a view. number is the index of its object, -1 for headings.
type line struct {
	text   string
	number int
}

// lines returns all rows of the view.
func (m Model) lines() []line {
	switch m.screen {
	case waiting:
		return m.waitingLines()
	case pools:
		return table(whatif.PoolHeaders(), m.look.Top.PoolRows(), nil)
	case detail:
		return m.detailLines()
	case help:
		return plain(helpText())
	}
	return m.nodeLines()
}

func plain(texts []string) []line {
	var list []line
	for i, text := range texts {
		list = append(list, line{text, i})
	}
	return list
}

// last returns the greatest number of a row.
func (m Model) last() int {
	last := 0
	for _, l := range m.lines() {
		last = max(last, l.number)
	}
	return last
}

// room returns how many rows fit on the screen.
func (m Model) room() int { return max(1, m.height-above-2) }

// scrolls reports whether the cursor scrolls the text instead of marking a row.
func (m Model) scrolls() bool { return m.screen == detail || m.screen == help }

// visible returns the rows around the cursor. A row of headers stays in place.
func (m Model) visible() []string {
	list, cursor := m.lines(), min(m.cursors[m.screen], m.last())
	var out []string
	if len(list) > 0 && list[0].number < 0 && !m.scrolls() {
		out, list = append(out, "  "+m.emphasis(list[0].text)), list[1:]
	}
	at := max(0, slices.IndexFunc(list, func(l line) bool { return l.number == cursor }))
	first := max(0, at-m.room()+1)
	if m.scrolls() {
		first = min(at, max(0, len(list)-m.room()))
	}
	for _, l := range list[first:min(len(list), first+m.room())] {
		switch {
		case m.scrolls():
			out = append(out, l.text)
		case l.number == cursor && m.settings.Paint:
			out = append(out, ansi.NewStyle().Reverse(true).Styled(ansi.Truncate("> "+l.text, m.width, "…")))
		case l.number == cursor:
			out = append(out, "> "+l.text)
		default:
			out = append(out, "  "+l.text)
		}
	}
	return out
}

// table aligns cells in columns. It puts each heading before the row of its number.
func table(head []string, rows [][]string, headings map[int]string) []line {
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	join := func(row []string) string {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+2))
			}
		}
		return b.String()
	}
	list := []line{{join(head), -1}}
	for i, row := range rows {
		if text := headings[i]; text != "" {
			list = append(list, line{text, -1})
		}
		list = append(list, line{join(row), i})
	}
	return list
}

// column is a column of the view of nodes.
type column struct {
	head string
	cell func(whatif.TopNode) string
}

// columns returns the columns of the view of nodes, without those in drop.
func (m Model) columns(drop []string) []column {
	t := m.look.Top
	list := []column{{"NODE", func(n whatif.TopNode) string { return n.Name }},
		{"POOL", func(n whatif.TopNode) string {
			if n.Pool == "" {
				return "-"
			}
			return n.Pool
		}},
		{"TYPE", whatif.TopNode.Type}, {"ZONE", whatif.TopNode.Zone}, {"CAPACITY", whatif.TopNode.Capacity},
		{"$/H", t.Price}}
	for i, u := range t.Totals.Use {
		list = append(list,
			column{strings.ToUpper(u.Resource), func(n whatif.TopNode) string { return m.use(n.Use[i]) }})
	}
	list = append(list, column{"PODS", whatif.TopNode.PodCount},
		column{"AGE", func(n whatif.TopNode) string { return t.Age(n.Created) }}, column{"STATE", t.What})
	if m.width <= 80 {
		list = slices.Insert(list, 0, column{"S", whatif.TopNode.Letter})
	}
	return slices.DeleteFunc(list, func(c column) bool { return slices.Contains(drop, c.head) })
}

// use formats how much of a resource is requested: as a percentage, with a bar where there is room, or as amounts.
func (m Model) use(u whatif.Use) string {
	switch {
	case u.Percent == nil:
		return "-"
	case m.amounts:
		return u.Used + "/" + u.Of
	case m.width < barsFrom:
		return u.Share()
	}
	return bar(*u.Percent, barWidth) + fmt.Sprintf(" %4s", u.Share())
}

const barWidth = 8

// bar draws a percentage in eighths of a character.
func bar(percent, width int) string {
	eighths := min(max(percent, 0), 100) * width * 8 / 100
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text + strings.Repeat(" ", width-len([]rune(text)))
}

// dropped returns the columns that may be left out on narrow screens, in the order in which they go.
func dropped() []string { return []string{"ZONE", "CAPACITY", "AGE", "MEMORY"} }

func (m Model) nodeLines() []line {
	list := m.nodes()
	for n := 0; ; n++ {
		columns := m.columns(dropped()[:n])
		var head []string
		rows := make([][]string, len(list))
		headings := map[int]string{}
		for _, c := range columns {
			head = append(head, c.head)
			for i, node := range list {
				rows[i] = append(rows[i], c.cell(node))
			}
		}
		for i, node := range list {
			if m.group != "" && (i == 0 || m.groupOf(list[i-1]) != m.groupOf(node)) {
				headings[i] = "· " + m.groupOf(node)
			}
		}
		lines := table(head, rows, headings)
		before := ansi.StringWidth(lines[0].text) - len("STATE")
		if n == len(dropped()) || m.width-2-before >= whatLeast {
			return lines
		}
	}
}

func (m Model) waitingLines() []line {
	var rows [][]string
	for _, w := range m.look.Top.Waiting {
		rows = append(rows, []string{w.Code, fmt.Sprint(w.Count), m.look.Top.Age(w.Since),
			w.Example.Namespace + "/" + w.Example.Name, w.Text})
	}
	if len(rows) == 0 {
		return []line{{"no pod waits", -1}}
	}
	return table([]string{"CAUSE", "PODS", "FOR", "SUCH AS", "WHY"}, rows, nil)
}

// detailLines returns what explain says about the object, and its pods.
func (m Model) detailLines() []line {
	texts := strings.Split(strings.TrimSuffix(m.text, "\n"), "\n")
	if m.text == "" {
		texts = []string{"asking why ..."}
	}
	var wrapped []string
	for _, text := range texts {
		wrapped = append(wrapped, strings.Split(ansi.Wrap(text, m.width, ""), "\n")...)
	}
	if m.about.Kind != "NodePool" {
		wrapped = append(wrapped, "", fmt.Sprintf("pods %d", len(m.pods)))
	}
	for _, pod := range m.pods {
		wrapped = append(wrapped, "  "+pod)
	}
	return plain(wrapped)
}

func helpText() []string {
	return []string{"↑ ↓ j k          row by row; PgUp, PgDn and space by screens; Home, End",
		"enter → p        explain what the cursor is on, and its pods",
		"esc ←            back; in the nodes: all nodes again",
		"n w o            nodes, waiting pods by cause, pools",
		"/                only nodes whose row has what is typed",
		"s                sort by price, free, age, name", "g                group by pool, zone, type, not at all",
		"r                shares or amounts", "q Ctrl-C         quit", "",
		"L launching  J joining  I initializing  R ready  N not ready  C chosen  D draining  S stays  U unmanaged"}
}

// small returns the content of a screen that is too small for views.
func (m Model) small() []string {
	lines := []string{fmt.Sprintf("%dx%d is too small: %dx%d", m.width, m.height, leastWidth, leastHeight),
		m.look.Top.Counts()}
	for _, n := range m.nodes() {
		lines = append(lines, n.Name+" "+m.look.Top.What(n))
	}
	return lines
}
