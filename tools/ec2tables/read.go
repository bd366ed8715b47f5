package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// source is where figures come from.
type source struct{ module, version, sum, file string }

func (s source) String() string { return s.module + "@" + s.version + "/" + s.file }

// priceList are the prices of a region.
type priceList struct {
	from         source
	region, date string            // the day as 2006-01-02
	prices       map[string]string // decimal, per hour, by type
}

// branchList are the branch interfaces of types.
type branchList struct {
	from   source
	date   string
	limits map[string]limit
}

// limit is what a type can have beside ordinary interfaces.
type limit struct {
	trunking bool
	branches int
}

// generated matches the text by which files say when they were made.
var generated = regexp.MustCompile(`generated at (\d{4}-\d{2}-\d{2})T\d{2}:\d{2}:\d{2}Z`)

// parse reads a Go file that says when it was made.
func parse(from source, content []byte) (file *ast.File, date string, err error) {
	file, err = parser.ParseFile(token.NewFileSet(), from.file, content, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", from, err)
	}
	dates := generated.FindAllSubmatch(content, -1)
	if len(dates) != 1 {
		return nil, "", fmt.Errorf("%s: it has %d dates, want one: \"generated at 2006-01-02T15:04:05Z\"", from,
			len(dates))
	}
	return file, string(dates[0][1]), nil
}

// table returns the entries of the only variable of a file that is a map with entries.
func table(from source, file *ast.File) ([]ast.Expr, error) {
	var found [][]ast.Expr
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.VAR {
			continue
		}
		for _, spec := range general.Specs {
			for _, value := range spec.(*ast.ValueSpec).Values {
				if literal, ok := value.(*ast.CompositeLit); ok && len(literal.Elts) > 0 {
					found = append(found, literal.Elts)
				}
			}
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s: it has %d variables with entries, want one", from, len(found))
	}
	return found[0], nil
}

// entries calls do for each `"key": value`. It fails on a duplicate key, and on any other element.
func entries(from source, elements []ast.Expr, do func(key string, value ast.Expr) error) error {
	seen := map[string]bool{}
	for _, element := range elements {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return fmt.Errorf("%s: an entry has no key", from)
		}
		literal, ok := pair.Key.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return fmt.Errorf("%s: a key is no string", from)
		}
		key, err := strconv.Unquote(literal.Value)
		if err != nil || !name.MatchString(key) || seen[key] {
			return fmt.Errorf("%s: key %s: want names of regions or types, each once", from, literal.Value)
		}
		seen[key] = true
		if err := do(key, pair.Value); err != nil {
			return err
		}
	}
	return nil
}

// name matches the names of regions and types.
var name = regexp.MustCompile(`^[a-z][a-z0-9.-]*$`)

// readPrices reads a file with `"region": {"type": 0.096, …}` for one or more regions.
func readPrices(from source, content []byte) ([]priceList, error) {
	file, date, err := parse(from, content)
	if err != nil {
		return nil, err
	}
	regions, err := table(from, file)
	if err != nil {
		return nil, err
	}
	var lists []priceList
	err = entries(from, regions, func(region string, value ast.Expr) error {
		types, ok := value.(*ast.CompositeLit)
		if !ok {
			return fmt.Errorf("%s: region %s is no list", from, region)
		}
		list := priceList{from: from, region: region, date: date, prices: map[string]string{}}
		lists = append(lists, list)
		return entries(from, types.Elts, func(kind string, value ast.Expr) error {
			price, ok := value.(*ast.BasicLit)
			if !ok || !decimal.MatchString(price.Value) || strings.Trim(price.Value, "0.") == "" {
				return fmt.Errorf("%s: the price of %s in %s: want a decimal number above 0 with at most six decimals",
					from, kind, region)
			}
			list.prices[kind] = price.Value
			if strings.Contains(price.Value, ".") {
				list.prices[kind] = strings.TrimRight(strings.TrimRight(price.Value, "0"), ".")
			}
			return nil
		})
	})
	return lists, err
}

// decimal matches a price without sign and exponent that micro-dollars can hold.
var decimal = regexp.MustCompile(`^[0-9]{1,6}(\.[0-9]{1,6})?$`)

// readBranches reads a file with `"type": {IsTrunkingCompatible: true, BranchInterface: 9, …}`.
func readBranches(from source, content []byte) (branchList, error) {
	list := branchList{from: from, limits: map[string]limit{}}
	file, date, err := parse(from, content)
	if err != nil {
		return list, err
	}
	list.date = date
	types, err := table(from, file)
	if err != nil {
		return list, err
	}
	err = entries(from, types, func(kind string, value ast.Expr) error {
		fields, ok := value.(*ast.CompositeLit)
		if !ok {
			return fmt.Errorf("%s: type %s is no structure", from, kind)
		}
		l, ok := readLimit(fields.Elts)
		if !ok || l.trunking != (l.branches > 0) {
			return fmt.Errorf(
				"%s: type %s: want IsTrunkingCompatible true with a BranchInterface above 0, or false with 0", from,
				kind)
		}
		list.limits[kind] = l
		return nil
	})
	return list, err
}

// readLimit reads the two fields that matter. ok is false if they are missing, or not constants.
func readLimit(fields []ast.Expr) (l limit, ok bool) {
	trunking, branches := "", ""
	for _, field := range fields {
		pair, isPair := field.(*ast.KeyValueExpr)
		if !isPair {
			return limit{}, false
		}
		key, _ := pair.Key.(*ast.Ident)
		switch value := pair.Value.(type) {
		case *ast.Ident:
			if key != nil && key.Name == "IsTrunkingCompatible" {
				trunking = value.Name
			}
		case *ast.BasicLit:
			if key != nil && key.Name == "BranchInterface" {
				branches = value.Value
			}
		}
	}
	count, err := strconv.Atoi(branches)
	return limit{trunking: trunking == "true", branches: count}, err == nil && count >= 0 &&
		(trunking == "true" || trunking == "false")
}
