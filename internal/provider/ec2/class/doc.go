// Package class computes what can be said of an EC2NodeClass without asking AWS: its drift hash (E-05), whether
// machines could use its settings (E-06, E-57, E-75, E-79), and its combined conditions (E-02). It is pure. Package
// resolve resolves the selectors, and package plug writes the results.
package class
