// Package class says what of an EC2NodeClass can be told without asking AWS: its drift hash (E-05), whether machines
// could read what it says (E-06, E-57, E-75, E-79), and its conditions put together (E-02). It is pure; package
// resolve finds out what the selectors stand for, and package plug writes all of it down.
package class
