package runtime

import (
	goruntime "runtime"
	"testing"
	"unsafe"
)

func TestAllocateRoundsUpToTheAlignment(t *testing.T) {
	var pinner goruntime.Pinner
	defer pinner.Unpin()
	for _, align := range []uintptr{1, 2, 4, 8} {
		for size := uintptr(1); size < 80; size++ {
			memory := Allocate(&pinner, size, align)
			if uintptr(memory)%align != 0 {
				t.Fatalf("%d bytes aligned to %d are at %p", size, align, memory)
			}
			for i, b := range unsafe.Slice((*byte)(memory), size) {
				if b != 0 {
					t.Fatalf("byte %d of %d is %d", i, size, b)
				}
			}
		}
	}
	if Allocate(&pinner, 0, 8) == nil {
		t.Fatal("no bytes are at null")
	}
}
