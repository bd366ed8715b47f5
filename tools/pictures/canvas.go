package main

import (
	"fmt"
	"html"
	"strings"
)

// Sizes in pixels of a picture that is not scaled.
const (
	width   = 960
	margin  = 24
	padding = 12 // between the outline of a box and its text
	headPx  = 15
	textPx  = 13
	leading = 18 // from line to line
)

// kind is what a box stands for; each looks the same in all pictures.
type kind string

const (
	ours    kind = "ours"    // what Joiner does or writes
	outside kind = "outside" // what others do: users, Kubernetes, a cloud
	good    kind = "good"    // an end that is wanted
	stop    kind = "stop"    // where it stops, and says why
)

// styles are the colours for light and for dark. Contrast of text on each ground is at least 4.5 to 1.
const styles = `<style>
text{font-family:Helvetica,Arial,"Liberation Sans",sans-serif;fill:#1c2330}
.ground{fill:#fff}.head{font-size:15px;font-weight:bold}.text{font-size:13px}.title{font-size:19px;font-weight:bold}
.dim{font-size:13px;fill:#4a5568}.mid{text-anchor:middle}
rect,path,line{stroke-width:1.5}
.ours{fill:#e3edfd;stroke:#2f5fb3}.outside{fill:#f1f3f6;stroke:#6b7688;stroke-dasharray:5 3}
.good{fill:#def3e4;stroke:#22733f}.stop{fill:#fde7e3;stroke:#b23a26}
.frame{fill:none;stroke:#8a94a6}.arrow{fill:none;stroke:#3b4658}.tip{fill:#3b4658;stroke:none}
.axis{stroke:#6b7688;fill:none}.curve{fill:none;stroke:#2f5fb3;stroke-width:3}
.bound{fill:none;stroke:#b23a26;stroke-width:2;stroke-dasharray:8 4}
@media (prefers-color-scheme:dark){
text{fill:#e8ecf3}.ground{fill:#141a24}.dim{fill:#aeb8c8}
.ours{fill:#1d3157;stroke:#82acf5}.outside{fill:#232b38;stroke:#98a3b5}
.good{fill:#173a25;stroke:#6fca8e}.stop{fill:#4a211a;stroke:#f09a88}
.frame{stroke:#78849a}.arrow{stroke:#c3ccda}.tip{fill:#c3ccda}
.axis{stroke:#98a3b5}.curve{stroke:#82acf5}.bound{stroke:#f09a88}}
</style>
`

// area is a rectangle of a picture.
type area struct{ x, y, w, h int }

func (a area) right() int  { return a.x + a.w }
func (a area) bottom() int { return a.y + a.h }
func (a area) midX() int   { return a.x + a.w/2 }
func (a area) midY() int   { return a.y + a.h/2 }

// label is a text and its place. Tests check that it fits, and that it does not lie on another one.
type label struct {
	area
	text string
}

// canvas collects what is drawn.
type canvas struct {
	body   strings.Builder
	boxes  []area
	labels []label
	low    int // the lowest pixel that is used
}

// svg returns the picture as a file.
func (p picture) svg() []byte {
	c := p.drawn()
	height := c.low + margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" `+
		`aria-labelledby="title desc">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n", html.EscapeString(p.title),
		html.EscapeString(p.about))
	b.WriteString(styles)
	fmt.Fprintf(&b, `<rect class="ground" width="%d" height="%d" rx="10"/>`+"\n", width, height)
	b.WriteString(c.body.String())
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func (p picture) drawn() *canvas {
	c := &canvas{}
	c.write("title", margin, 42, 19, p.title)
	p.draw(c)
	return c
}

// top is where a picture begins below its title.
const top = 66

// write puts a line of text on the canvas; y is its base line. A class "mid" centres it on x.
func (c *canvas) write(class string, x, y, px int, text string) {
	fmt.Fprintf(&c.body, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, html.EscapeString(text))
	left, w := x, widthOf(text, px)
	if strings.HasSuffix(class, " mid") {
		left -= w / 2
	}
	c.labels = append(c.labels, label{area{left, y - px + 3, w, px}, text})
	c.low = max(c.low, y+4)
}

// cell is what a box says.
type cell struct {
	kind
	head, text string
}

// row draws boxes of one height side by side, from x to right, with a gap between two.
func (c *canvas) row(x, y, right, gap int, cells ...cell) []area {
	w := (right - x - gap*(len(cells)-1)) / len(cells)
	lines, most := make([][]string, len(cells)), 0
	for i, one := range cells {
		lines[i] = wrapped(one.text, w-2*padding)
		most = max(most, len(lines[i]))
	}
	h := 2*padding + headPx + most*leading
	var made []area
	for i, one := range cells {
		box := area{x + i*(w+gap), y, w, h}
		fmt.Fprintf(&c.body, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="6"/>`+"\n", one.kind, box.x,
			box.y, box.w, box.h)
		c.write("head", box.x+padding, y+padding+headPx-2, headPx, one.head)
		for j, line := range lines[i] {
			c.write("text", box.x+padding, y+padding+headPx+(j+1)*leading-3, textPx, line)
		}
		made = append(made, box)
	}
	c.boxes = append(c.boxes, made...)
	c.low = max(c.low, y+h)
	return made
}

// column draws boxes of one width below each other.
func (c *canvas) column(x, y, right, gap int, cells ...cell) []area {
	var made []area
	for _, one := range cells {
		made = append(made, c.row(x, y, right, 0, one)...)
		y = made[len(made)-1].bottom() + gap
	}
	return made
}

// frame draws a line around what belongs together, with a word above.
func (c *canvas) frame(around area, name string) {
	fmt.Fprintf(&c.body, `<rect class="frame" x="%d" y="%d" width="%d" height="%d" rx="10"/>`+"\n", around.x, around.y,
		around.w, around.h)
	c.write("dim", around.x+padding, around.y+19, textPx, name)
	c.low = max(c.low, around.bottom())
}

// around returns the frame of boxes, with room for its name.
func around(boxes ...area) area {
	all := boxes[0]
	for _, b := range boxes[1:] {
		x, y := min(all.x, b.x), min(all.y, b.y)
		all = area{x, y, max(all.right(), b.right()) - x, max(all.bottom(), b.bottom()) - y}
	}
	return area{all.x - padding, all.y - 28, all.w + 2*padding, all.h + 28 + padding}
}

// caption writes text below or beside a picture's boxes, in lines.
func (c *canvas) caption(x, y, right int, text string) {
	for i, line := range wrapped(text, right-x) {
		c.write("dim", x, y+i*leading, textPx, line)
	}
}

// chain draws arrows from each box to the next one in its row.
func (c *canvas) chain(boxes []area) {
	for i := 1; i < len(boxes); i++ {
		c.arrow(boxes[i-1].right(), boxes[i-1].midY(), boxes[i].x, boxes[i].midY())
	}
}

// arrow draws a line to a point: straight if possible, otherwise down, across and down again.
func (c *canvas) arrow(x1, y1, x2, y2 int) {
	if x1 == x2 || y1 == y2 {
		c.path(x1, y1, x2, y2)
		return
	}
	middle := (y1 + y2) / 2
	c.path(x1, y1, x1, middle, x2, middle, x2, y2)
}

// across draws a line to a point that goes sideways, up or down, and sideways again.
func (c *canvas) across(x1, y1, x2, y2 int) {
	middle := (x1 + x2) / 2
	c.path(x1, y1, middle, y1, middle, y2, x2, y2)
}

// path draws a line through points, x and y in turn, with a tip at its end.
func (c *canvas) path(at ...int) {
	n := len(at)
	x, y, fromX, fromY := at[n-2], at[n-1], at[n-4], at[n-3]
	const tip = 8
	dx, dy := sign(x-fromX), sign(y-fromY)
	fmt.Fprintf(&c.body, `<path class="arrow" d="M%d %d`, at[0], at[1])
	for i := 2; i < n-2; i += 2 {
		fmt.Fprintf(&c.body, " L%d %d", at[i], at[i+1])
	}
	fmt.Fprintf(&c.body, ` L%d %d"/><path class="tip" d="M%d %d L%d %d L%d %d Z"/>`+"\n", x-tip*dx, y-tip*dy, x, y,
		x-tip*dx-5*dy, y-tip*dy-5*dx, x-tip*dx+5*dy, y-tip*dy+5*dx)
	for i := 1; i < n; i += 2 {
		c.low = max(c.low, at[i])
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// wrapped breaks text between words into lines of at most so many pixels. A line break in it stays.
func wrapped(text string, pixels int) (lines []string) {
	for part := range strings.SplitSeq(text, "\n") {
		line := ""
		for _, word := range strings.Fields(part) {
			longer := strings.TrimSpace(line + " " + word)
			if line != "" && widthOf(longer, textPx) > pixels {
				lines, longer = append(lines, line), word
			}
			line = longer
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// widthOf estimates the width of a text, and is seldom too low. A picture has no font of its own, so the exact width
// is not known.
func widthOf(text string, px int) int {
	sum := 0 // in hundredths of the font's size
	for _, r := range text {
		switch {
		case strings.ContainsRune("ijl.,:;'|! ", r):
			sum += 29
		case strings.ContainsRune("tfrI()[]-/", r):
			sum += 38
		case strings.ContainsRune("mwMW@%", r):
			sum += 88
		case r >= 'A' && r <= 'Z':
			sum += 71
		default:
			sum += 58
		}
	}
	return (sum*px + 99) / 100
}
