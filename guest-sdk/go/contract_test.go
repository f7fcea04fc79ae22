package guesthouse_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// generate.sh notes which contract the bindings were made from.
func TestTheBindingsAreThoseOfTheContract(t *testing.T) {
	files, err := filepath.Glob("../../wit/*.wit")
	if err != nil || len(files) == 0 {
		t.Skip("the contract is not beside this copy of the SDK")
	}
	var now strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&now, "%x  %s\n", sha256.Sum256(text), filepath.Base(file))
	}
	then, err := os.ReadFile("internal/bindings/contract.sha256")
	if err != nil {
		t.Fatal(err)
	}
	if now.String() != string(then) {
		t.Errorf("the contract has changed since the bindings were made; run generate.sh\nnow:\n%sthen:\n%s", now.String(), then)
	}
}
