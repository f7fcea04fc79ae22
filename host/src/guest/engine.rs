//! The wasmtime engines, one for each size class of guests, with the settings that make fresh instances cheap.

use std::sync::{Arc, OnceLock};

use wasmtime::component::Linker;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use super::epoch::{Running, Ticker};
use super::schedule::Schedule;
use super::state::State;

/// Limits of the engines, shared by all guests of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineLimits {
    /// Instances alive at a time of guests in the small class; the pool reserves address space for as many.
    pub small_instances: u32,
    /// The same of the medium class.
    pub medium_instances: u32,
    /// The same of the large class.
    pub large_instances: u32,
    /// Largest memory that any guest can be given; the limit of a call may be lower, never higher.
    pub memory_bytes_max: usize,
    /// Largest table that any guest can be given.
    pub table_elements_max: usize,
    /// Processor time that a call may use on its caller's thread before it moves to the batch threads.
    pub interactive_cpu_ms: u64,
    /// Threads of the lowest priority that run long calls.
    pub batch_threads: usize,
    /// Long calls alive at a time; more wait, within their deadline.
    pub batch_calls_max: usize,
}

impl Default for EngineLimits {
    fn default() -> Self {
        EngineLimits {
            small_instances: 256,
            medium_instances: 128,
            large_instances: 64,
            memory_bytes_max: 512 << 20,
            table_elements_max: 100_000,
            interactive_cpu_ms: 10,
            batch_threads: std::thread::available_parallelism().map_or(2, usize::from),
            batch_calls_max: 64,
        }
    }
}

/// Guests of one class share an engine, whose pool is cut for guests of that size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeClass {
    /// Compiled guests without much of a runtime: Rust, C.
    Small,
    /// Guests that carry a small interpreter, such as QuickJS.
    Medium,
    /// Guests with a large runtime: Go, StarlingMonkey, Python.
    Large,
}

impl SizeClass {
    /// The class's name, as logs and `inspect` show it.
    pub fn as_str(self) -> &'static str {
        match self {
            SizeClass::Small => "small",
            SizeClass::Medium => "medium",
            SizeClass::Large => "large",
        }
    }

    /// Chooses the class from what a component declares.
    pub(crate) fn of(component_bytes: usize, memory_bytes: u64, table_elements: u64) -> SizeClass {
        if component_bytes <= 1 << 20 && memory_bytes <= 4 << 20 && table_elements <= 4_096 {
            SizeClass::Small
        } else if component_bytes <= 3 << 20 && memory_bytes <= 16 << 20 && table_elements <= 16_384 {
            SizeClass::Medium
        } else {
            SizeClass::Large
        }
    }

    /// Memory of a slot that stays resident between two calls, so that the second call finds its pages mapped:
    /// about what a typical guest of the class dirties in a call.
    fn memory_keep_resident_bytes(self) -> usize {
        match self {
            SizeClass::Small => 256 << 10,
            SizeClass::Medium => 2 << 20,
            SizeClass::Large => 16 << 20,
        }
    }

    fn table_keep_resident_bytes(self) -> usize {
        match self {
            SizeClass::Small | SizeClass::Medium => 64 << 10,
            SizeClass::Large => 1 << 20,
        }
    }

    fn instances(self, limits: &EngineLimits) -> u32 {
        match self {
            SizeClass::Small => limits.small_instances,
            SizeClass::Medium => limits.medium_instances,
            SizeClass::Large => limits.large_instances,
        }
    }
}

impl std::fmt::Display for SizeClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Bytes of stack that guest code may use before it traps.
const GUEST_STACK_BYTES_MAX: usize = 1 << 20;
/// Size of the stack that a call runs on; the host's own functions need the rest.
const CALL_STACK_BYTES: usize = 2 << 20;
/// Core instances and tables for each component instance in a pool, on average: adapters have some of their own.
const POOL_PARTS_PER_INSTANCE: u32 = 4;
/// Size of wasmtime's record of one instance; a large runtime imports and exports thousands of functions.
const INSTANCE_RECORD_BYTES_MAX: usize = 4 << 20;

/// All engines of the host. Cloning is cheap; when the last clone and the last version are gone, the engines, the
/// thread that interrupts guests and the threads for long calls end.
#[derive(Clone)]
pub struct Engines {
    inner: Arc<Inner>,
}

struct Inner {
    limits: EngineLimits,
    // Each is made when the first guest of its class is loaded: a pool is not free, and few hosts need all three.
    small: OnceLock<ClassEngine>,
    medium: OnceLock<ClassEngine>,
    large: OnceLock<ClassEngine>,
    ticker: Ticker,
    schedule: Schedule,
}

/// An engine and what is built once for it.
pub(crate) struct ClassEngine {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
}

impl Engines {
    /// Starts the threads that interrupt guests and run long calls; engines follow with the first guest of a class.
    pub fn new(limits: EngineLimits) -> std::io::Result<Engines> {
        let ticker = Ticker::start()?;
        let schedule = Schedule::start(&limits)?;
        Ok(Engines {
            inner: Arc::new(Inner { limits, small: OnceLock::new(), medium: OnceLock::new(), large: OnceLock::new(), ticker, schedule }),
        })
    }

    /// The limits that these engines were made with.
    pub fn limits(&self) -> &EngineLimits {
        &self.inner.limits
    }

    /// The engine of a class, made now if it is the first time.
    pub(crate) fn class(&self, class: SizeClass) -> wasmtime::Result<&ClassEngine> {
        let cell = match class {
            SizeClass::Small => &self.inner.small,
            SizeClass::Medium => &self.inner.medium,
            SizeClass::Large => &self.inner.large,
        };
        if let Some(made) = cell.get() {
            return Ok(made);
        }
        // Two loads at once may both make an engine; one is then dropped unused.
        let engine = Engine::new(&config(class, &self.inner.limits))?;
        let linker = crate::capability::linker(&engine)?;
        let made = cell.get_or_init(|| ClassEngine { engine, linker });
        self.inner.ticker.add(class, &made.engine);
        Ok(made)
    }

    /// Keeps the epoch ticking while the returned value lives.
    pub(crate) fn running(&self) -> Running {
        self.inner.ticker.running()
    }

    pub(crate) fn schedule(&self) -> &Schedule {
        &self.inner.schedule
    }
}

fn config(class: SizeClass, limits: &EngineLimits) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .memory_init_cow(true)
        .table_lazy_init(true)
        // Guests' functions are synchronous, and the bookkeeping for concurrent ones costs microseconds a call.
        .concurrency_support(false)
        // Traps name no source lines, so the map from code to wasm offsets would only swell the cache.
        .generate_address_map(false)
        .max_wasm_stack(GUEST_STACK_BYTES_MAX)
        .async_stack_size(CALL_STACK_BYTES)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool(class, limits)));
    config
}

fn pool(class: SizeClass, limits: &EngineLimits) -> PoolingAllocationConfig {
    let instances = class.instances(limits).max(1);
    let parts = instances.saturating_mul(POOL_PARTS_PER_INSTANCE);
    // A wasm memory has at most 4 GiB, and a pool refuses to be built for more.
    let memory_bytes_max = limits.memory_bytes_max.min(4 << 30);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        .total_core_instances(parts)
        .total_memories(instances)
        .total_tables(parts)
        .total_stacks(instances)
        .max_memory_size(memory_bytes_max)
        .table_elements(limits.table_elements_max)
        .max_tables_per_module(4)
        .max_component_instance_size(INSTANCE_RECORD_BYTES_MAX)
        .max_core_instance_size(INSTANCE_RECORD_BYTES_MAX)
        // Resetting a used slot by hand beats giving its pages back to the kernel, which interrupts the other
        // processors and makes the next call fault every page in again.
        .linear_memory_keep_resident(class.memory_keep_resident_bytes())
        .table_keep_resident(class.table_keep_resident_bytes())
        // Kernels since 6.7 can say which pages were written; with older ones wasmtime resets all that is kept.
        .pagemap_scan(Enabled::Auto);
    pool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_follows_the_largest_figure() {
        let table = [
            (100 << 10, 1 << 20, 100, SizeClass::Small),
            (1 << 20, 4 << 20, 4_096, SizeClass::Small),
            ((1 << 20) + 1, 1 << 20, 100, SizeClass::Medium),
            (100 << 10, 5 << 20, 100, SizeClass::Medium),
            (100 << 10, 1 << 20, 5_000, SizeClass::Medium),
            (5 << 20, 1 << 20, 100, SizeClass::Large),
            (100 << 10, 17 << 20, 100, SizeClass::Large),
            (100 << 10, 1 << 20, 20_000, SizeClass::Large),
        ];
        for (bytes, memory, elements, class) in table {
            assert_eq!(SizeClass::of(bytes, memory, elements), class, "{bytes} {memory} {elements}");
        }
    }
}
