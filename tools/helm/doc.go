// Package helm renders and lints the charts with the libraries of Helm 3 and Helm 4 (U-11). Its tests hold the
// renderer of package charts to them, which joiner-webhook prints with and the other tests of the charts use. It
// is a module of its own, since Helm brings more than a hundred others. `make bin/helm3 bin/helm4` builds Helm's
// own commands from here, which localcluster/e2e/charts installs with.
package helm
