package main

import (
	"os"
	"strings"
	"testing"

	"github.com/fila-dev/fila-go/internal/filatest"
)

// The quickstart of the README is this program, and it works.
func TestQuickstart(t *testing.T) {
	t.Setenv("FILA_ADDR", filatest.Start(t, "").Addr)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out := os.Stdout
	os.Stdout = write
	main()
	os.Stdout = out
	_ = write.Close()
	said := make([]byte, 100)
	count, _ := read.Read(said)
	if got := string(said[:count]); got != "sent true\nreceived hello\n" {
		t.Errorf("it said %q", got)
	}

	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```go\n"+string(program)+"```\n") {
		t.Error("the README has another program: copy examples/quickstart/main.go into it")
	}
}
