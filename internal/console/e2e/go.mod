module github.com/joiner-autoscaler/joiner/internal/console/e2e

go 1.26.0

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/go-logr/logr v1.4.3
	github.com/joiner-autoscaler/joiner v0.0.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/joiner-autoscaler/joiner/autonodepolicy v0.0.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)

replace (
	github.com/joiner-autoscaler/joiner => ../../..
	github.com/joiner-autoscaler/joiner/autonodepolicy => ../../../autonodepolicy
	github.com/joiner-autoscaler/joiner/nodescheduling => ../../../nodescheduling
)
