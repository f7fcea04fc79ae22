//! What a current wasi-libc says of threads, and Debian's of 2022 does not say at all: that there are none. For the fallback toolchain.
#![no_std]

use core::ffi::{c_int, c_void};

/// No more threads can be made.
const EAGAIN: c_int = 6;

#[unsafe(no_mangle)]
pub extern "C" fn pthread_attr_init(_: *mut c_void) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_attr_destroy(_: *mut c_void) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_attr_setstacksize(_: *mut c_void, _: usize) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_create(_: *mut c_void, _: *const c_void, _: *const c_void, _: *mut c_void) -> c_int {
    EAGAIN
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_detach(_: *mut c_void) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_join(_: *mut c_void, _: *mut c_void) -> c_int {
    EAGAIN
}
