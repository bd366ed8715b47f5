package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Line is a record with a remark for the table.
type Line struct {
	Record
	Note string
}

// Tables prints the lines, those of whole controllers apart.
func Tables(w io.Writer, lines []Line) error {
	var planned, whole []Line
	for _, l := range lines {
		if l.System == nil {
			planned = append(planned, l)
		} else {
			whole = append(whole, l)
		}
	}
	if len(planned) > 0 {
		if err := table(w, planned); err != nil {
			return err
		}
	}
	if len(whole) > 0 {
		return systemTable(w, whole)
	}
	return nil
}

// table prints lines of planning. Each of Joiner's also says how many times more the peer took.
func table(w io.Writer, lines []Line) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t,
		"scenario\tside\twall\tpods/s\tCPU\tallocated\tper pod\tpeak RSS\tplaced\tunplaced\tnodes\t$/h\tover "+
			"bound\tviolations\twall ratio\tCPU ratio\t")
	for _, l := range lines {
		pods := max(1, l.PodsPlaced+l.PodsUnplaced)
		wall, cpu := "", ""
		if peer, found := find(lines, l.Scenario, Karpenter); found && l.Side == Joiner && !l.CutOff {
			wall, cpu = more(peer)+ratio(peer.WallSeconds, l.WallSeconds),
				more(peer)+ratio(peer.CPUSeconds, l.CPUSeconds)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.0f\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%.3f\t%s\t%s\t%s\t%s\t\n",
			l.Scenario, l.Side, more(l.Record)+seconds(l.WallSeconds), float64(l.PodsPlaced)/l.WallSeconds,
			more(l.Record)+seconds(l.CPUSeconds),
			bytes(l.AllocatedBytes), bytes(l.AllocatedBytes/uint64(pods)), bytes(l.PeakRSSBytes), l.PodsPlaced,
			l.PodsUnplaced, l.Nodes, l.PricePerHour, over(l.Record), violations(l.Record), wall, cpu)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, l := range lines {
		if l.Note != "" {
			fmt.Fprintf(w, "%s, %s: %s\n", l.Scenario, l.Side, l.Note)
		}
	}
	return nil
}

func find(lines []Line, scenario, side string) (Record, bool) {
	for _, l := range lines {
		if l.Scenario == scenario && l.Side == side {
			return l.Record, true
		}
	}
	return Record{}, false
}

// more marks figures of a side that was cut off: otherwise they would be larger.
func more(r Record) string {
	if r.CutOff {
		return "> "
	}
	return ""
}

func ratio(peer, own float64) string {
	if own <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fx", peer/own)
}

func seconds(s float64) string {
	switch {
	case s < 1:
		return fmt.Sprintf("%.2f ms", s*1000)
	default:
		return fmt.Sprintf("%.2f s", s)
	}
}

func bytes(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	amount, unit := float64(n), 0
	for amount >= 1024 && unit+1 < len(units) {
		amount, unit = amount/1024, unit+1
	}
	return fmt.Sprintf("%.1f %s", amount, units[unit])
}

func over(r Record) string {
	if r.LowerBound == 0 || r.PodsUnplaced > 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", r.PricePerHour/r.LowerBound)
}

func violations(r Record) string {
	if r.Violations == nil {
		return "not checked"
	}
	return strconv.Itoa(*r.Violations)
}

// Exponents prints how the cost of each side grows with the size, for each kind of scenario that ran in more than one
// size. It is the exponent of the least-squares line through the logarithms.
func Exponents(w io.Writer, lines []Line) {
	type key struct{ kind, side string }
	var order []key
	points := map[key][][2]float64{} // size, CPU seconds
	for _, l := range lines {
		size := sizeOf(l.Scenario)
		if size == 0 || l.CutOff || l.System != nil {
			continue
		}
		k := key{l.Scenario[:strings.LastIndex(l.Scenario, "-")], l.Side}
		if points[k] == nil {
			order = append(order, k)
		}
		points[k] = append(points[k], [2]float64{float64(size), l.CPUSeconds})
	}
	for _, k := range order {
		if exponent, some := Fit(points[k]); some {
			fmt.Fprintf(w, "%s, %s: CPU grows with N^%.2f over %d sizes\n", k.kind, k.side, exponent, len(points[k]))
		}
	}
}

// sizeOf returns the size in a scenario's name; 0 when there is none.
func sizeOf(name string) int {
	size, err := strconv.Atoi(strings.Replace(name[strings.LastIndex(name, "-")+1:], "k", "000", 1))
	if err != nil {
		return 0
	}
	return size
}

// Fit returns b of y = a·x^b by least squares over logarithms; false with fewer than two points, or one not above 0.
func Fit(points [][2]float64) (exponent float64, some bool) {
	n := float64(len(points))
	var sx, sy, sxx, sxy float64
	for _, p := range points {
		if p[0] <= 0 || p[1] <= 0 {
			return 0, false
		}
		x, y := math.Log(p[0]), math.Log(p[1])
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if n < 2 || n*sxx == sx*sx {
		return 0, false
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx), true
}
