module github.com/fila-dev/fila-go/filaotel

go 1.25.0

require (
	go.opentelemetry.io/otel v1.46.0
	go.opentelemetry.io/otel/trace v1.46.0
)

require github.com/cespare/xxhash/v2 v2.3.0 // indirect
