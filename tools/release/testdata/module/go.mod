module example.test/hello

go 1.26.0
