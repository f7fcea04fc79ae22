//! The thread that makes running guests yield once a millisecond, and rests while none runs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use wasmtime::Engine;

use super::engine::SizeClass;

/// Longest time that guest code runs before it gives its thread back.
const TICK: Duration = Duration::from_millis(1);
/// Ticks without any call after which the thread rests; waking it costs the next call a few microseconds.
const IDLE_TICKS_MAX: u32 = 200;

/// Owns the thread; dropping it ends the thread.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    engines: [OnceLock<Engine>; 3],
    /// Calls that exist. Raised before a call looks at `resting`, and read by the thread after it wrote `resting`,
    /// both in sequentially consistent order, so that one of the two always sees the other.
    running: AtomicUsize,
    resting: AtomicBool,
    stopping: AtomicBool,
    thread: OnceLock<Thread>,
}

/// A call that exists; the epoch ticks at least until it is dropped.
pub(crate) struct Running(Arc<Shared>);

impl Ticker {
    pub(crate) fn start() -> std::io::Result<Ticker> {
        let shared = Arc::new(Shared {
            engines: [const { OnceLock::new() }; 3],
            running: AtomicUsize::new(0),
            resting: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            thread: OnceLock::new(),
        });
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("guest-epoch".into()).spawn(move || tick(&for_thread))?;
        shared.thread.get_or_init(|| thread.thread().clone());
        Ok(Ticker { shared, thread: Some(thread) })
    }

    /// Ticks this engine, too. Only the first engine of a class counts, as in `Engines`.
    pub(crate) fn add(&self, class: SizeClass, engine: &Engine) {
        let [small, medium, large] = &self.shared.engines;
        let cell = match class {
            SizeClass::Small => small,
            SizeClass::Medium => medium,
            SizeClass::Large => large,
        };
        cell.get_or_init(|| engine.clone());
    }

    pub(crate) fn running(&self) -> Running {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        if self.shared.resting.load(Ordering::SeqCst)
            && let Some(thread) = self.shared.thread.get()
        {
            thread.unpark();
        }
        Running(Arc::clone(&self.shared))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It sleeps for a tick at most, so this is short; a panic of it has nothing to tell here.
            drop(thread.join());
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

fn tick(shared: &Shared) {
    let mut idle_ticks = 0;
    while !shared.stopping.load(Ordering::SeqCst) {
        if shared.running.load(Ordering::SeqCst) > 0 {
            idle_ticks = 0;
        } else {
            idle_ticks += 1;
        }
        if idle_ticks > IDLE_TICKS_MAX {
            rest(shared);
            idle_ticks = 0;
        }
        std::thread::park_timeout(TICK);
        for engine in shared.engines.iter().filter_map(OnceLock::get) {
            engine.increment_epoch();
        }
    }
}

fn rest(shared: &Shared) {
    shared.resting.store(true, Ordering::SeqCst);
    while shared.running.load(Ordering::SeqCst) == 0 && !shared.stopping.load(Ordering::SeqCst) {
        std::thread::park();
    }
    shared.resting.store(false, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eventually(wanted: impl Fn() -> bool) {
        let start = std::time::Instant::now();
        while !wanted() {
            assert!(start.elapsed() < Duration::from_secs(20), "waited too long");
            std::thread::yield_now();
        }
    }

    #[test]
    fn rests_without_calls_and_wakes_for_one() {
        let ticker = Ticker::start().unwrap();
        let resting = || ticker.shared.resting.load(Ordering::SeqCst);
        eventually(resting);
        let call = ticker.running();
        eventually(|| !resting());
        drop(call);
        eventually(resting);
    }
}
