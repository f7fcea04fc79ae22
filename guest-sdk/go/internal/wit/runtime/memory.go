// Package runtime gives the generated bindings memory that stays where it is while the host reads or writes it.
package runtime

import (
	goruntime "runtime"
	"unsafe"
)

// Allocate gives zeroed memory that does not move until the pinner lets go of it. The size need not be a multiple of the
// alignment: return areas are as large as the largest result and aligned as the strictest, so that it often is not.
func Allocate(pinner *goruntime.Pinner, size, align uintptr) unsafe.Pointer {
	if size == 0 {
		// Never read through, but an aligned address other than null is what some hosts insist on.
		return unsafe.Pointer(&nothing)
	}
	var memory unsafe.Pointer
	switch align {
	case 1:
		memory = unsafe.Pointer(unsafe.SliceData(make([]uint8, size)))
	case 2:
		memory = unsafe.Pointer(unsafe.SliceData(make([]uint16, words(size, align))))
	case 4:
		memory = unsafe.Pointer(unsafe.SliceData(make([]uint32, words(size, align))))
	default:
		memory = unsafe.Pointer(unsafe.SliceData(make([]uint64, words(size, 8))))
	}
	pinner.Pin(memory)
	return memory
}

var nothing uint64

// words is how many units of that size hold so many bytes.
func words(size, unit uintptr) uintptr { return (size + unit - 1) / unit }
