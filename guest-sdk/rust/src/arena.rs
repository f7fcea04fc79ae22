//! An allocator that serves a short call from memory that the module was born with.
//!
//! A host that keeps guests in pooled memory pays system calls when a guest grows it, and a call that allocates a few kilobytes need not.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::{Cell, UnsafeCell};

/// Small enough to cost nothing when unused (it is zero-initialised, and no page of it is touched before its turn).
pub const ARENA_BYTES: usize = 192 * 1024;
/// What is larger goes to the fallback, so that one big buffer does not use the arena up.
pub const ARENA_BLOCK_BYTES_MAX: usize = 32 * 1024;

#[repr(align(16))]
struct Memory(UnsafeCell<[u8; ARENA_BYTES]>);

/// Hands out a fixed block of memory from front to back, and what does not fit from `F`.
///
/// Memory comes back when it was the last to be handed out, and all of it when nothing is in use any more.
pub struct Arena<F> {
    memory: Memory,
    used: Cell<usize>,
    live: Cell<usize>,
    fallback: F,
}

// SAFETY: it is a static only in WebAssembly without threads (`arena_global`), where nobody else can be in it. Tests use one per thread.
unsafe impl<F> Sync for Arena<F> {}

impl<F> Arena<F> {
    pub const fn new(fallback: F) -> Self {
        Arena { memory: Memory(UnsafeCell::new([0; ARENA_BYTES])), used: Cell::new(0), live: Cell::new(0), fallback }
    }

    fn start(&self) -> *mut u8 {
        self.memory.0.get().cast()
    }

    /// The position of a pointer in the arena; none when the fallback gave it.
    fn position(&self, ptr: *mut u8) -> Option<usize> {
        let offset = ptr.addr().wrapping_sub(self.start().addr());
        (offset < ARENA_BYTES).then_some(offset)
    }
}

// SAFETY: blocks are disjoint (`used` only grows past them, and falls to the start of the last block when that is freed, or to 0 when no
// block is live), aligned by `bump`, and inside `memory`, which never moves in a static. Every pointer that is not in the arena came from
// the fallback, with the same layout, and goes back there.
unsafe impl<F: GlobalAlloc> GlobalAlloc for Arena<F> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match bump(self.start().addr(), self.used.get(), layout) {
            Some((begin, end)) => {
                self.used.set(end);
                self.live.set(self.live.get() + 1);
                // SAFETY: `bump` keeps `begin` inside the arena.
                unsafe { self.start().add(begin) }
            }
            // SAFETY: the caller's promises are passed on.
            None => unsafe { self.fallback.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        let Some(begin) = self.position(ptr) else {
            // SAFETY: not ours, so it came from the fallback.
            return unsafe { self.fallback.dealloc(ptr, layout) };
        };
        let live = self.live.get() - 1;
        self.live.set(live);
        if live == 0 {
            self.used.set(0);
        } else if begin + layout.size() == self.used.get() {
            self.used.set(begin);
        }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Some(begin) = self.position(ptr) else {
            // SAFETY: not ours, so it came from the fallback.
            return unsafe { self.fallback.realloc(ptr, layout, new_size) };
        };
        let last = begin + layout.size() == self.used.get();
        if last && new_size <= ARENA_BLOCK_BYTES_MAX && begin + new_size <= ARENA_BYTES {
            self.used.set(begin + new_size);
            return ptr;
        }
        if new_size <= layout.size() {
            return ptr;
        }
        // SAFETY: the caller promises that `new_size` is not zero and does not overflow when aligned; the old block is valid for its size,
        // which is the smaller one, and the new block is another.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
            if !new.is_null() {
                new.copy_from_nonoverlapping(ptr, layout.size());
                self.dealloc(ptr, layout);
            }
            new
        }
    }
}

/// Begin and end of the next block, where it fits.
fn bump(base: usize, used: usize, layout: Layout) -> Option<(usize, usize)> {
    if layout.size() > ARENA_BLOCK_BYTES_MAX {
        return None;
    }
    let begin = base.checked_add(used)?.checked_next_multiple_of(layout.align())? - base;
    let end = begin.checked_add(layout.size())?;
    (end <= ARENA_BYTES).then_some((begin, end))
}

#[cfg(test)]
mod tests {
    use std::alloc::System;
    use std::collections::HashMap;

    use super::*;

    fn arena() -> Box<Arena<System>> {
        Box::new(Arena::new(System))
    }

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn reuses_the_last_block_and_everything_when_nothing_lives() {
        let arena = arena();
        unsafe {
            let first = arena.alloc(layout(100, 1));
            let second = arena.alloc(layout(50, 1));
            arena.dealloc(second, layout(50, 1));
            assert_eq!(arena.alloc(layout(50, 1)), second);
            arena.dealloc(first, layout(100, 1));
            assert_ne!(arena.alloc(layout(10, 1)), first, "the second block still lives behind it");
            assert_eq!(arena.live.get(), 2);
            arena.dealloc(second, layout(50, 1));
            arena.dealloc(second.add(50), layout(10, 1));
            assert_eq!(arena.alloc(layout(8, 8)), first);
        }
    }

    #[test]
    fn grows_the_last_block_in_place_and_moves_others() {
        let arena = arena();
        unsafe {
            let first = arena.alloc(layout(8, 1));
            first.write_bytes(7, 8);
            assert_eq!(arena.realloc(first, layout(8, 1), 16), first);
            let second = arena.alloc(layout(8, 1));
            let moved = arena.realloc(first, layout(16, 1), 64);
            assert!(moved > second);
            assert_eq!(std::slice::from_raw_parts(moved, 8), [7; 8]);
        }
    }

    #[test]
    fn large_blocks_and_a_full_arena_go_to_the_fallback_and_come_back() {
        let arena = arena();
        unsafe {
            let large = arena.alloc(layout(ARENA_BLOCK_BYTES_MAX + 1, 1));
            assert_eq!(arena.position(large), None);
            arena.dealloc(large, layout(ARENA_BLOCK_BYTES_MAX + 1, 1));
            let blocks: Vec<_> = (0..8).map(|_| arena.alloc(layout(ARENA_BLOCK_BYTES_MAX, 1))).collect();
            let outside: Vec<_> = blocks.iter().filter(|block| arena.position(**block).is_none()).collect();
            assert_eq!(outside.len(), 2);
            for block in blocks {
                block.write_bytes(1, ARENA_BLOCK_BYTES_MAX);
                arena.dealloc(block, layout(ARENA_BLOCK_BYTES_MAX, 1));
            }
            assert_eq!((arena.used.get(), arena.live.get()), (0, 0));
        }
    }

    #[test]
    fn blocks_never_overlap_in_a_long_mixed_run() {
        let arena = arena();
        let mut live: HashMap<usize, (usize, usize, u8)> = HashMap::new();
        let mut seed = 1_u64;
        let mut next = move |below: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % below
        };
        let check = |ptr: *mut u8, size: usize, mark: u8| unsafe {
            assert!(std::slice::from_raw_parts(ptr, size).iter().all(|byte| *byte == mark));
        };
        for step in 0..20_000_u32 {
            let mark = step as u8;
            let pick = live.keys().nth(next(live.len() + 1)).copied();
            match pick {
                Some(addr) => {
                    let (size, align, old) = live.remove(&addr).unwrap();
                    let ptr = std::ptr::with_exposed_provenance_mut::<u8>(addr);
                    check(ptr, size, old);
                    if next(2) == 0 {
                        unsafe { arena.dealloc(ptr, layout(size, align)) };
                        continue;
                    }
                    let grown = 1 + next(40_000);
                    let ptr = unsafe { arena.realloc(ptr, layout(size, align), grown) };
                    check(ptr, size.min(grown), old);
                    unsafe { ptr.write_bytes(mark, grown) };
                    assert_eq!(ptr.addr() % align, 0);
                    live.insert(ptr.expose_provenance(), (grown, align, mark));
                }
                None => {
                    let (size, align) = (1 + next(9_000), 1 << next(7));
                    let ptr = unsafe { arena.alloc(layout(size, align)) };
                    assert_eq!(ptr.addr() % align, 0);
                    unsafe { ptr.write_bytes(mark, size) };
                    live.insert(ptr.expose_provenance(), (size, align, mark));
                }
            }
        }
        for (addr, (size, align, mark)) in live {
            let ptr = std::ptr::with_exposed_provenance_mut::<u8>(addr);
            check(ptr, size, mark);
            unsafe { arena.dealloc(ptr, layout(size, align)) };
        }
        assert_eq!((arena.used.get(), arena.live.get()), (0, 0));
    }
}
