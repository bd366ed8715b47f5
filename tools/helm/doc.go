// Package helm renders and lints the charts with the libraries of Helm 3 and Helm 4 (U-11). Its tests compare the
// renderer of package charts with them: joiner-webhook and the other tests of the charts use that renderer. It is a
// module of its own, since Helm brings more than a hundred others. `make bin/helm3 bin/helm4` builds Helm's own
// commands from here, for localcluster/e2e/charts.
package helm
