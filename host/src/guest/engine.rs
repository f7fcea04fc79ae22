//! The wasmtime engines, one for each size class of guests, with the settings that make fresh instances cheap.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use wasmtime::component::Linker;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use super::epoch::{Running, Ticker};
use super::limits::CORE_INSTANCES_MAX;
use super::lobby::Lobby;
use super::schedule::Schedule;
use super::shares::Shares;
use super::state::State;

/// Largest memory that a guest of this host can be given.
pub const MEMORY_BYTES_MAX: usize = 512 << 20;
/// Largest table that a guest of this host can be given.
pub const TABLE_ELEMENTS_MAX: usize = 100_000;

/// Instances that a host keeps between calls, unless it is told otherwise.
pub const KEPT_INSTANCES_MAX: usize = 256;

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
    /// Threads of the lowest priority that run long calls; each guest has as many turns on them at a time.
    pub batch_threads: usize,
    /// Instances that are kept between calls, of all guests together.
    pub kept_instances: usize,
}

impl Default for EngineLimits {
    fn default() -> Self {
        EngineLimits {
            small_instances: 256,
            medium_instances: 128,
            large_instances: 64,
            memory_bytes_max: MEMORY_BYTES_MAX,
            table_elements_max: TABLE_ELEMENTS_MAX,
            interactive_cpu_ms: 10,
            kept_instances: KEPT_INSTANCES_MAX,
            batch_threads: std::thread::available_parallelism().map_or(2, usize::from),
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

    /// Places in the pool of the class.
    fn places(self, limits: &EngineLimits) -> u32 {
        let instances = match self {
            SizeClass::Small => limits.small_instances,
            SizeClass::Medium => limits.medium_instances,
            SizeClass::Large => limits.large_instances,
        };
        instances.max(1)
    }

    /// How many places one instance of a component takes, from what the component needs; None if the whole pool has not
    /// as many.
    pub(crate) fn places_of(self, memories: u32, tables: u32, limits: &EngineLimits) -> Option<usize> {
        let wanted = memories.div_ceil(MEMORIES_PER_PLACE).max(tables.div_ceil(TABLES_PER_PLACE)).max(1);
        usize::try_from(wanted).ok().filter(|_| wanted <= self.places(limits))
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
/// Memories in a pool for each place. Nearly every component has one; one that has more takes several places.
const MEMORIES_PER_PLACE: u32 = 2;
/// Tables in a pool for each place: one for each of a component's modules, with adapters about ten.
const TABLES_PER_PLACE: u32 = 16;
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
    small: Once<ClassEngine>,
    medium: Once<ClassEngine>,
    large: Once<ClassEngine>,
    ticker: Ticker,
    schedule: Schedule,
    lobby: Arc<Lobby>,
}

/// An engine and what is built once for it.
pub(crate) struct ClassEngine {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
    /// The places of the engine's pool: with one of them, a call finds all that it needs there.
    pub(crate) places: Arc<Shares>,
}

/// A value that is made at its first use, by one user while the others wait for it.
struct Once<T> {
    made: OnceLock<T>,
    making: Mutex<()>,
}

impl<T> Once<T> {
    const fn new() -> Once<T> {
        Once { made: OnceLock::new(), making: Mutex::new(()) }
    }

    /// The value; a failure to make it is this user's alone, and the next one tries again.
    fn get<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let value = make()?;
        Ok(self.made.get_or_init(|| value))
    }
}

impl Engines {
    /// Starts the threads that interrupt guests and run long calls; engines follow with the first guest of a class.
    pub fn new(limits: EngineLimits) -> std::io::Result<Engines> {
        let ticker = Ticker::start()?;
        let schedule = Schedule::start(&limits)?;
        let lobby = Lobby::new(limits.kept_instances);
        Ok(Engines {
            inner: Arc::new(Inner { limits, small: Once::new(), medium: Once::new(), large: Once::new(), ticker, schedule, lobby }),
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
        cell.get(|| {
            let engine = Engine::new(&config(class, &self.inner.limits))?;
            let linker = crate::capability::linker(&engine)?;
            self.inner.ticker.add(class, &engine);
            let places = usize::try_from(class.places(&self.inner.limits)).unwrap_or(usize::MAX);
            Ok(ClassEngine { engine, linker, places: Shares::new(places) })
        })
    }

    /// Keeps the epoch ticking while the returned value lives.
    pub(crate) fn running(&self) -> Running {
        self.inner.ticker.running()
    }

    /// Where the instances are that are kept between calls.
    pub(crate) fn lobby(&self) -> &Arc<Lobby> {
        &self.inner.lobby
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
    let places = class.places(limits);
    // Core instances take nothing in a pool but their number, so each call can have all that its limits allow.
    let core_instances = places.saturating_mul(u32::try_from(CORE_INSTANCES_MAX).unwrap_or(u32::MAX));
    // A wasm memory has at most 4 GiB, and a pool refuses to be built for more.
    let memory_bytes_max = limits.memory_bytes_max.min(4 << 30);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(places)
        .total_core_instances(core_instances)
        .total_memories(places.saturating_mul(MEMORIES_PER_PLACE))
        .total_tables(places.saturating_mul(TABLES_PER_PLACE))
        .total_stacks(places)
        .max_memory_size(memory_bytes_max)
        .table_elements(limits.table_elements_max)
        .max_tables_per_module(4)
        .max_memories_per_module(MEMORIES_PER_PLACE)
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
    #[test]
    fn a_value_is_made_once_and_again_only_after_a_failure() {
        let once = Once::<usize>::new();
        assert_eq!(once.get(|| Err("no")), Err("no"));
        let made = std::sync::atomic::AtomicUsize::new(0);
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    let value = once.get(|| {
                        let before = made.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        // The others come to the same point while this one works.
                        (0..1_000).for_each(|_| std::thread::yield_now());
                        Ok::<_, ()>(before)
                    });
                    assert_eq!(value, Ok(&0));
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
    }

    /// A component of that many core modules, each with a memory or tables of its own.
    fn component(modules: u32, memories: u64, tables: u32) -> Vec<u8> {
        use wasm_encoder::{
            Component, InstanceSection, MemorySection, MemoryType, Module, ModuleArg, ModuleSection, RefType, TableSection, TableType,
        };
        let mut component = Component::new();
        for index in 0..modules {
            let mut module = Module::new();
            let mut table_section = TableSection::new();
            for _ in 0..tables {
                table_section.table(TableType { element_type: RefType::FUNCREF, table64: false, minimum: 1, maximum: None, shared: false });
            }
            module.section(&table_section);
            let mut memory_section = MemorySection::new();
            if u64::from(index) < memories {
                memory_section.memory(MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None });
            }
            module.section(&memory_section);
            component.section(&ModuleSection(&module));
        }
        let mut instances = InstanceSection::new();
        for index in 0..modules {
            instances.instantiate(index, std::iter::empty::<(&str, ModuleArg)>());
        }
        component.section(&instances);
        component.finish()
    }

    #[test]
    fn a_pool_holds_all_its_places_whatever_the_components_are_made_of() {
        let limits = EngineLimits { medium_instances: 6, ..EngineLimits::default() };
        let engine = Engine::new(&config(SizeClass::Medium, &limits)).unwrap();
        let linker = wasmtime::component::Linker::<()>::new(&engine);
        for (modules, memories, tables, calls) in [(1, 1, 1, 6), (8, 1, 1, 6), (40, 1, 0, 6), (4, 4, 0, 3), (16, 1, 2, 3)] {
            let code = wasmtime::component::Component::from_binary(&engine, &component(modules, memories, tables)).unwrap();
            let needs = code.resources_required().unwrap();
            let places = SizeClass::Medium.places_of(needs.num_memories, needs.num_tables, &limits).unwrap();
            assert_eq!(6 / places, calls, "{modules} modules, {memories} memories");
            let alive: Vec<_> = (0..calls)
                .map(|call| {
                    let mut store = wasmtime::Store::new(&engine, ());
                    // Nothing runs, but the engine's settings want it said.
                    store.set_epoch_deadline(1);
                    let started = linker.instantiate(&mut store, &code);
                    assert!(started.is_ok(), "{modules} modules, call {call}: {:?}", started.err());
                    store
                })
                .collect();
            drop(alive);
        }
        assert_eq!(SizeClass::Medium.places_of(13, 0, &limits), None);
    }
}
