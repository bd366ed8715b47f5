package printer

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"k8s.io/client-go/util/jsonpath"
)

// Rowed is an answer with a list: custom columns show its entries. Other answers are one row of custom columns.
type Rowed interface {
	// Rows returns the name of the list in the answer's JSON.
	Rows() string
}

// column is one of custom-columns: its heading, and the path of its value in an entry.
type column struct {
	heading string
	path    *jsonpath.JSONPath
}

// columnsOf parses the text after custom-columns=, as in kubectl: HEADING:.path,HEADING:.path.
func columnsOf(text string) (list []column, err error) {
	for part := range strings.SplitSeq(text, ",") {
		heading, path, found := strings.Cut(part, ":")
		if !found || heading == "" || path == "" {
			return nil, fmt.Errorf("%q is no column: want HEADING:.path, as in NAME:.name", part)
		}
		if !strings.HasPrefix(path, "{") {
			path = "{." + strings.TrimPrefix(path, ".") + "}"
		}
		c := column{heading: heading, path: jsonpath.New(heading).AllowMissingKeys(true)}
		if err := c.path.Parse(path); err != nil {
			return nil, fmt.Errorf("column %s: %w", heading, err)
		}
		list = append(list, c)
	}
	return list, nil
}

// missing stands for a value that an entry does not have, as in kubectl.
const missing = "<none>"

// writeColumns writes a row for each entry.
func writeColumns(out io.Writer, a Answer, columns []column, headers bool) error {
	content, err := generic(a)
	if err != nil {
		return err
	}
	rows := []any{content}
	if of, is := a.(Rowed); is {
		object, _ := content.(map[string]any)
		rows, _ = object[of.Rows()].([]any)
	}
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	cells := make([]string, len(columns))
	if headers {
		for i, c := range columns {
			cells[i] = c.heading
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	for _, row := range rows {
		for i, c := range columns {
			var cell bytes.Buffer
			if err := c.path.Execute(&cell, row); err != nil {
				return fmt.Errorf("column %s: %w", c.heading, err)
			}
			if cells[i] = strings.Join(strings.Fields(cell.String()), " "); cells[i] == "" {
				cells[i] = missing
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}
