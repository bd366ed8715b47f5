package main

import "github.com/prometheus/prometheus/promql/parser"

// without returns the expression of an alert without its thresholds and offsets. It has series if everything that the
// alert looks at has some and their labels match, however far the alert is from firing. A comparison with a number
// becomes its other side, and one of two sets of series becomes their difference. `or` becomes its first side,
// `unless` becomes `and`, and absent(x) becomes x. Expressions are changed in place.
func without(expr parser.Expr) parser.Expr {
	switch e := expr.(type) {
	case *parser.BinaryExpr:
		return withoutComparison(e)
	case *parser.ParenExpr:
		e.Expr = without(e.Expr)
	case *parser.UnaryExpr:
		e.Expr = without(e.Expr)
	case *parser.AggregateExpr:
		e.Expr = without(e.Expr)
	case *parser.SubqueryExpr:
		e.Expr, e.OriginalOffset = without(e.Expr), 0
	case *parser.MatrixSelector:
		e.VectorSelector = without(e.VectorSelector)
	case *parser.VectorSelector:
		e.OriginalOffset = 0
	case *parser.Call:
		for i := range e.Args {
			e.Args[i] = without(e.Args[i])
		}
		if e.Func.Name == "absent" {
			return e.Args[0]
		}
	}
	return expr
}

func withoutComparison(e *parser.BinaryExpr) parser.Expr {
	e.LHS, e.RHS = without(e.LHS), without(e.RHS)
	switch {
	case e.Op == parser.LOR:
		return e.LHS
	case e.Op == parser.LUNLESS:
		e.Op = parser.LAND
	case !e.Op.IsComparisonOperator():
	case e.RHS.Type() == parser.ValueTypeScalar:
		return e.LHS
	case e.LHS.Type() == parser.ValueTypeScalar:
		return e.RHS
	default:
		e.Op, e.ReturnBool = parser.SUB, false
	}
	return e
}
