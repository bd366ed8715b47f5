package whatif

// Types counts the instance types that the requirements of a NodePool leave, of all that its node class offers. The
// last result is false where that is not known.
func (w *World) Types(pool string) (left, all int, known bool) {
	found := w.store.Snapshot().Pool(pool)
	if found == nil || found.Catalog == nil {
		return 0, 0, false
	}
	if len(found.Requirements.EmptyKeys()) > 0 {
		return 0, len(found.Catalog.Types), true
	}
	offers := found.Catalog.All()
	for rule := range found.Requirements.All() {
		if found.Catalog.Known(rule.Key()) {
			offers = offers.And(found.Catalog.Compatible(rule))
		}
	}
	return found.Catalog.CountTypes(offers), len(found.Catalog.Types), true
}
