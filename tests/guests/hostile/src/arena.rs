//! An allocator that serves short calls from a fixed arena, so that they never grow the memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;

const ARENA_BYTES: usize = 192 << 10;

#[global_allocator]
static ARENA: Arena = Arena { bytes: UnsafeCell::new([0; ARENA_BYTES]), used: UnsafeCell::new(0) };

struct Arena {
    bytes: UnsafeCell<[u8; ARENA_BYTES]>,
    used: UnsafeCell<usize>,
}

// SAFETY: a guest has one thread.
unsafe impl Sync for Arena {}

// SAFETY: blocks from the arena never overlap, since `used` only rises; the rest is the system's.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.bytes.get().cast::<u8>();
        unsafe {
            let used = &mut *self.used.get();
            let start = (base as usize + *used).next_multiple_of(layout.align()) - base as usize;
            match start.checked_add(layout.size()) {
                Some(end) if end <= ARENA_BYTES => {
                    *used = end;
                    base.add(start)
                }
                _ => System.alloc(layout),
            }
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let base = self.bytes.get() as usize;
        if !(base..base + ARENA_BYTES).contains(&(block as usize)) {
            unsafe { System.dealloc(block, layout) }
        }
    }
}
