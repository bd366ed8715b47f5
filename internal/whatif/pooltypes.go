package whatif

// Types returns how many instance types a NodePool's requirements leave, of all that its node class offers. known is
// false if that is not known.
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
