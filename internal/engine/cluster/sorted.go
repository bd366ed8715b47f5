package cluster

import "slices"

// This file changes the sorted lists of nodes and pods that snapshots share.

// leaveOut returns list, which is sorted, without some of its members.
func leaveOut[T any](list, members []*T, compare func(a, b *T) int) []*T {
	if len(members) == 0 {
		return list
	}
	positions := make([]int, 0, len(members))
	for _, member := range members {
		if at, found := slices.BinarySearchFunc(list, member, compare); found {
			positions = append(positions, at)
		}
	}
	slices.Sort(positions)
	kept, from := make([]*T, 0, len(list)-len(positions)), 0
	for _, at := range slices.Compact(positions) {
		kept, from = append(kept, list[from:at]...), at+1
	}
	return append(kept, list[from:]...)
}

// insert returns list, which is sorted, with more members.
func insert[T any](list, members []*T, compare func(a, b *T) int) []*T {
	if len(members) == 0 {
		return list
	}
	fresh := sorted(members, compare)
	merged, from := make([]*T, 0, len(list)+len(fresh)), 0
	for _, member := range fresh {
		at, _ := slices.BinarySearchFunc(list[from:], member, compare)
		merged, from = append(append(merged, list[from:from+at]...), member), from+at
	}
	return append(merged, list[from:]...)
}
