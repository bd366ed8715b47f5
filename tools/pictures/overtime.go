package main

import (
	"fmt"
	"strings"
)

// swatch draws a small box of a kind.
func (c *canvas) swatch(k kind, x, y int) {
	fmt.Fprintf(&c.body, `<rect class="%s" x="%d" y="%d" width="22" height="16" rx="4"/>`+"\n", k, x, y)
	c.low = max(c.low, y+16)
}

// panel is a chart of a number of nodes over time, in steps of even width.
type panel struct {
	area
	most int // nodes at the upper end
	name string
}

func (p panel) at(nodes int) int { return p.bottom() - nodes*p.h/p.most }

// steps draws a line that holds each value for one step.
func (c *canvas) steps(p panel, class string, values []int) {
	var d strings.Builder
	for i, v := range values {
		x, verb := p.x+i*p.w/len(values), "L"
		if i == 0 {
			verb = "M"
		}
		fmt.Fprintf(&d, "%s%d %d L%d %d ", verb, x, p.at(v), p.x+(i+1)*p.w/len(values), p.at(v))
	}
	fmt.Fprintf(&c.body, `<path class="%s" d="%s"/>`+"\n", class, strings.TrimSpace(d.String()))
}

// axes draws the two axes of a chart, its name, and marks for nodes.
func (c *canvas) axes(p panel) {
	fmt.Fprintf(&c.body, `<path class="axis" d="M%d %d L%d %d L%d %d"/>`+"\n", p.x, p.y, p.x, p.bottom(),
		p.right(), p.bottom())
	for nodes := 0; nodes <= p.most; nodes += 4 {
		text := fmt.Sprint(nodes)
		c.write("dim", p.x-8-widthOf(text, textPx), p.at(nodes)+5, textPx, text)
	}
	c.write("head", p.x, p.y-14, headPx, p.name)
	c.low = max(c.low, p.bottom())
}

// phases writes below a chart what happens in each part of it; from and to count steps.
func (c *canvas) phases(p panel, steps int, texts ...phase) {
	for _, one := range texts {
		x, right := p.x+one.from*p.w/steps, p.x+one.to*p.w/steps
		fmt.Fprintf(&c.body, `<path class="axis" d="M%d %d L%d %d"/>`+"\n", x, p.bottom(), x, p.bottom()+8)
		c.caption(x+4, p.bottom()+22, right-6, one.text)
	}
}

type phase struct {
	from, to int
	text     string
}

// limits shows how a soft and a hard limit hold over time.
func limits() picture {
	return picture{
		name:  "limits",
		title: "Soft and hard limit over time",
		about: "Two charts of the nodes of a pool. With a soft limit of ten, pods bring it to ten nodes, " +
			"replacing nodes goes one above and back, and after the limit is lowered to six, nodes drain down to it. " +
			"With a hard limit of ten it is never " +
			"above ten: a replacement waits until a node has gone.",
		draw: func(c *canvas) {
			soft := panel{area{68, top + 34, width - 68 - margin, 150}, 12, "limits: {nodes: 10}, soft"}
			hard := panel{area{68, soft.bottom() + 136, width - 68 - margin, 150}, 12, "hardLimits: {nodes: 10}, hard"}
			for _, p := range []panel{soft, hard} {
				c.axes(p)
			}
			const n = 24
			bound := append(repeat(10, 16), repeat(6, 8)...)
			c.steps(soft, "bound", bound)
			c.steps(soft, "curve", []int{0, 2, 5, 8, 10, 10, 10, 10, 11, 10, 11, 10, 11, 10, 10, 10, 10, 9, 8, 7, 6, 6,
				6, 6})
			c.phases(soft, n,
				phase{0, 7, "Pods wait: nodes are launched up to the limit, and no further. What waits says why"},
				phase{7, 16, "Drift: each replacement is launched first, so the pool is above the limit for a while"},
				phase{16, n, "The limit is lowered: nodes drain at once, down to it"})
			c.steps(hard, "bound", bound)
			c.steps(hard, "curve", []int{0, 2, 5, 8, 10, 10, 10, 10, 10, 10, 9, 10, 9, 10, 9, 10, 10, 9, 8, 7, 6, 6, 6,
				6})
			c.phases(hard, n, phase{0, 7, "The same: up to the limit"},
				phase{7, 16, "Drift: a replacement waits for room. When a node goes, its place is used, " +
					"and the pool is never above"},
				phase{16, n, "The same. A draining node counts until it is gone"})
			y := c.low + 18
			fmt.Fprintf(&c.body, `<path class="curve" d="M%d %d L%d %d"/><path class="bound" d="M%d %d L%d %d"/>`+"\n",
				margin, y+8, margin+30, y+8, 260, y+8, 290, y+8)
			c.write("dim", margin+40, y+13, textPx, "nodes of the pool")
			c.write("dim", 300, y+13, textPx, "the limit")
		},
	}
}

func repeat(value, times int) []int {
	made := make([]int, times)
	for i := range made {
		made[i] = value
	}
	return made
}
