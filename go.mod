module github.com/joiner-autoscaler/joiner

go 1.26.0
