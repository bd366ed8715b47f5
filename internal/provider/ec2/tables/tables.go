// Package tables has facts about EC2 that need no call (E-26): prices, for when the Pricing service is not available,
// and branch interfaces, which no API has. It is never a source of types: a type that EC2 does not name is not offered
// (E-17).
//
// The two files are written by tools/ec2tables (`make tables`) from published Go modules; their headers say which, and
// from what day.
package tables

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

//go:embed prices.txt branches.txt
var files embed.FS

// Tables are the contents of the two files. They are immutable.
type Tables struct {
	prices   []*Prices // by column of the file
	branches map[string]int64
}

// Prices are on-demand prices of a region.
type Prices struct {
	Region string
	// Currency is the currency of the prices, USD or CNY. They are used unchanged: planning only compares them with
	// each other.
	Currency string
	// Date is the day of the prices, in UTC. Old is true if they are much older than the others.
	Date     time.Time
	Old      bool
	OnDemand map[string]resources.Money // per hour, by instance type
}

// Read reads the embedded files. The error of a malformed file names its line; tests ensure that there is none.
func Read() (*Tables, error) {
	tables := &Tables{branches: map[string]int64{}}
	for _, file := range []struct {
		name string
		row  func([]source, []string) error
	}{{"prices.txt", tables.readPrices}, {"branches.txt", tables.readBranches}} {
		content, err := files.ReadFile(file.name)
		if err != nil {
			return nil, err
		}
		if err := parse(string(content), file.row); err != nil {
			return nil, fmt.Errorf("%s: %w", file.name, err)
		}
	}
	return tables, nil
}

// Prices returns the prices to use in a region: its own, or otherwise those of another region of China there, and of
// us-east-1 everywhere else, since their order is much the same. Its field Region says whose prices they are. Never
// nil.
func (t *Tables) Prices(region string) *Prices {
	for _, p := range t.prices {
		if p.Region == region {
			return p
		}
	}
	china := strings.HasPrefix(region, "cn-")
	for _, p := range t.prices {
		if strings.HasPrefix(p.Region, "cn-") == china {
			return p
		}
	}
	return &Prices{Region: region}
}

// Branches returns how many branch interfaces an instance type can have. So many of its pods can have their own
// security groups. It is 0 for unknown types and those without trunking.
func (t *Tables) Branches(kind string) int64 { return t.branches[kind] }

// source is a line of the header: where the numbers come from.
type source map[string]string

// required returns the keys that every source must have.
func required() []string {
	return []string{"region", "date", "module", "version", "file", "licence", "sum"}
}

// parse reads a file: comments, sources, the names of the columns, and a line for each type. row reads the fields of
// such a line.
func parse(content string, row func([]source, []string) error) error {
	var sources []source
	columns := 0
	for i, line := range strings.Split(strings.TrimSuffix(content, "\n"), "\n") {
		fields := strings.Fields(line)
		var err error
		switch {
		case len(fields) == 0 || strings.HasPrefix(line, "#"):
		case fields[0] == "region":
			var s source
			s, err = readSource(fields)
			sources = append(sources, s)
		case fields[0] == "type":
			columns = len(fields)
		case len(fields) != columns:
			err = fmt.Errorf("it has %d fields, want %d", len(fields), columns)
		default:
			err = row(sources, fields)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return nil
}

func readSource(fields []string) (source, error) {
	s := source{}
	for _, field := range append([]string{"region=" + fields[1]}, fields[2:]...) {
		key, value, _ := strings.Cut(field, "=")
		s[key] = value
	}
	for _, key := range required() {
		if s[key] == "" {
			return nil, fmt.Errorf("the source has no %s", key)
		}
	}
	return s, nil
}

func (t *Tables) readPrices(sources []source, fields []string) error {
	for len(t.prices) < len(sources) {
		s := sources[len(t.prices)]
		date, err := time.Parse(time.DateOnly, s["date"])
		if err != nil {
			return err
		}
		t.prices = append(t.prices, &Prices{
			Region: s["region"], Currency: s["currency"], Date: date, Old: s["old"] == "true",
			OnDemand: map[string]resources.Money{},
		})
	}
	if len(fields) != len(t.prices)+1 {
		return fmt.Errorf("it has %d prices, want one for each of %d regions", len(fields)-1, len(t.prices))
	}
	for i, text := range fields[1:] {
		if text == "-" {
			continue
		}
		dollars, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		price, err := resources.FromDollars(dollars)
		if err != nil || price == 0 {
			return fmt.Errorf("%s: the price %s of %s: want a number above 0", t.prices[i].Region, text, fields[0])
		}
		if _, twice := t.prices[i].OnDemand[fields[0]]; twice {
			return fmt.Errorf("type %s is there twice", fields[0])
		}
		t.prices[i].OnDemand[fields[0]] = price
	}
	return nil
}

func (t *Tables) readBranches(sources []source, fields []string) error {
	branches, err := strconv.ParseInt(fields[2], 10, 32)
	if err != nil || len(sources) != 1 || branches < 0 || fields[1] != strconv.FormatBool(branches > 0) {
		return fmt.Errorf("type %s: trunking %s, %s branch interfaces: want true and more than 0, or false and 0",
			fields[0], fields[1], fields[2])
	}
	if _, twice := t.branches[fields[0]]; twice {
		return fmt.Errorf("type %s is there twice", fields[0])
	}
	t.branches[fields[0]] = branches
	return nil
}
