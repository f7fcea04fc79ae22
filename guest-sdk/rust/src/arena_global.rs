//! Makes the arena the allocator of the guest.

use std::alloc::System;

use crate::arena::Arena;

#[global_allocator]
static GLOBAL: Arena<System> = Arena::new(System);
