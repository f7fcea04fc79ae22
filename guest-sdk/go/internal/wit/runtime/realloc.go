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
	resume := PauseClock()
	memory := Allocate(&received, size, align)
	if old != nil {
		copy(unsafe.Slice((*byte)(memory), size), unsafe.Slice((*byte)(old), min(oldSize, size)))
	}
	resume()
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

var clockPaused bool

// PauseClock makes Go's clock stand still until the returned function is called.
//
// While the host asks for memory, a component may call nothing outside of itself. Yet Go reads the clock when it collects
// garbage, and whenever it schedules a goroutine while a timer is running. So the clock stands still except while a
// handler runs, and also during calls of the host that return something which needs memory.
func PauseClock() (resume func()) { return switchClock(true) }

// RunClock lets Go's clock go on until the returned function is called.
func RunClock() (restore func()) { return switchClock(false) }

func switchClock(paused bool) func() {
	before := clockPaused
	setPaused(paused)
	return func() { setPaused(before) }
}

func setPaused(paused bool) {
	if paused != clockPaused {
		setClockPaused(paused)
		clockPaused = paused
	}
}
