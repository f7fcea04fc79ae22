//go:build wasip1

package runtime

import (
	goruntime "runtime"
	"unsafe"
)

// early is what the adapter of WASI preview 1 gets its state and its stack from: it asks while Go's own start makes its
// first system calls, when nothing can be allocated yet.
var (
	early     [256 << 10]byte
	earlyUsed uintptr
	started   bool
)

func init() { started = true }

// received holds what the host has written for us, until the bindings have made Go values of it.
var received goruntime.Pinner

// Unpin lets go of what the host has written: from here on the Go values keep it alive.
func Unpin() { received.Unpin() }

//go:wasmexport cabi_realloc
func cabiRealloc(old unsafe.Pointer, oldSize, align, size uintptr) unsafe.Pointer {
	if !started {
		return allocateEarly(align, size)
	}
	// While the host asks for memory, a component may call nothing outside of itself. Yet an allocation may start a garbage
	// collection, which reads the clock; so the adapter makes it stand still meanwhile.
	setClockPaused(true)
	memory := Allocate(&received, size, align)
	if old != nil {
		copy(unsafe.Slice((*byte)(memory), size), unsafe.Slice((*byte)(old), min(oldSize, size)))
	}
	setClockPaused(false)
	return memory
}

func allocateEarly(align, size uintptr) unsafe.Pointer {
	start := uintptr(unsafe.Pointer(&early))
	next := (start + earlyUsed + align - 1) &^ (align - 1)
	if next+size > start+uintptr(len(early)) {
		return nil
	}
	earlyUsed = next + size - start
	return unsafe.Pointer(next)
}

//go:wasmimport wasi_snapshot_preview1 adapter_monotonic_clock_set_paused
func setClockPaused(paused bool)
