//! Figures: what is counted while the host runs, and its text for Prometheus.

use crate::guest::Failure;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The media type of [`Telemetry::text`].
pub const TEXT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of the times of calls: from a tenth of a millisecond, each four times the one before, to 100 seconds.
const SECONDS_BUCKETS: (f64, f64, u16) = (0.000_1, 4.0, 11);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    guest: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfOutcome {
    guest: String,
    outcome: &'static str,
}

/// How a call of a guest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With a result, questions included.
    Ok,
    /// With an error of the guest's own.
    GuestError,
    /// It crashed.
    Crash,
    /// Its time by the clock was over.
    Deadline,
    /// Its processor time was used up.
    CpuBudget,
    /// It ran out of memory.
    Memory,
    /// It handed over too much.
    OutputTooLarge,
    /// It did not start.
    StartFailed,
    /// There was no place for it.
    Busy,
    /// Others changed the state that it worked on, again and again.
    StateConflict,
    /// What it wrote could not be kept.
    NotSaved,
    /// Whoever called it did not wait for the end.
    Cancelled,
}

impl Ended {
    const ALL: [Ended; 12] = [
        Ended::Ok,
        Ended::GuestError,
        Ended::Crash,
        Ended::Deadline,
        Ended::CpuBudget,
        Ended::Memory,
        Ended::OutputTooLarge,
        Ended::StartFailed,
        Ended::Busy,
        Ended::StateConflict,
        Ended::NotSaved,
        Ended::Cancelled,
    ];

    /// As a label.
    pub fn as_str(self) -> &'static str {
        match self {
            Ended::Ok => "ok",
            Ended::GuestError => "guest_error",
            Ended::Crash => "crash",
            Ended::Deadline => "deadline",
            Ended::CpuBudget => "cpu_budget",
            Ended::Memory => "memory",
            Ended::OutputTooLarge => "output_too_large",
            Ended::StartFailed => "start_failed",
            Ended::Busy => "busy",
            Ended::StateConflict => "state_conflict",
            Ended::NotSaved => "not_saved",
            Ended::Cancelled => "cancelled",
        }
    }

    /// What became of a call that ended so.
    pub fn of<T>(outcome: &Result<T, Failure>) -> Ended {
        match outcome {
            Ok(_) => Ended::Ok,
            Err(Failure::Guest(_) | Failure::NotExported(_)) => Ended::GuestError,
            Err(Failure::Trap(_)) => Ended::Crash,
            Err(Failure::Deadline) => Ended::Deadline,
            Err(Failure::CpuBudget) => Ended::CpuBudget,
            Err(Failure::Memory) => Ended::Memory,
            Err(Failure::OutputTooLarge { .. }) => Ended::OutputTooLarge,
            Err(Failure::StartFailed(_)) => Ended::StartFailed,
            Err(Failure::Busy | Failure::TooMany) => Ended::Busy,
            Err(Failure::StateConflict) => Ended::StateConflict,
            Err(Failure::NotSaved(_)) => Ended::NotSaved,
        }
    }

    /// Whether something went wrong that the guest did not say itself.
    pub fn is_failure(self) -> bool {
        !matches!(self, Ended::Ok | Ended::GuestError | Ended::Cancelled)
    }
}

/// What is counted of one guest, over all its versions. Cloning is cheap; the default counts for nobody.
#[derive(Clone)]
pub struct GuestFigures(Arc<Counted>);

struct Counted {
    calls: [Counter; Ended::ALL.len()],
    seconds: Histogram,
    memory_bytes: Gauge,
}

impl Default for GuestFigures {
    fn default() -> Self {
        let counted = Counted { calls: std::array::from_fn(|_| Counter::default()), seconds: histogram(), memory_bytes: Gauge::default() };
        Self(Arc::new(counted))
    }
}

impl std::fmt::Debug for GuestFigures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuestFigures").field("calls", &self.calls()).finish_non_exhaustive()
    }
}

impl GuestFigures {
    /// Counts a call from now on. Unless it is said how it ended, nobody waited for its end.
    pub(crate) fn begin(&self) -> Counting<'_> {
        Counting { figures: self, began: Instant::now(), how: Ended::Cancelled }
    }

    /// Counts a call that ended so, after that time.
    pub fn ended(&self, how: Ended, after: Duration) {
        if let Some(counter) = self.0.calls.get(how as usize) {
            counter.inc();
        }
        self.0.seconds.observe(after.as_secs_f64());
    }

    /// The linear memory of its live instances, in bytes.
    pub(crate) fn memory_bytes(&self) -> &Gauge {
        &self.0.memory_bytes
    }

    /// How many calls ended in each way; ways in which none did are left out.
    pub fn calls(&self) -> Vec<(Ended, u64)> {
        let counts = Ended::ALL.into_iter().zip(&self.0.calls).map(|(how, counter)| (how, counter.get()));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

/// A call that is being counted.
pub(crate) struct Counting<'a> {
    figures: &'a GuestFigures,
    began: Instant,
    how: Ended,
}

impl Counting<'_> {
    /// The call ended so.
    pub(crate) fn end(mut self, how: Ended) {
        self.how = how;
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.figures.ended(self.how, self.began.elapsed());
    }
}

/// All that is counted in one host.
#[derive(Clone)]
pub struct Telemetry(Arc<Inner>);

struct Inner {
    registry: Registry,
    observed: Observed,
    calls: Family<OfOutcome, Counter>,
    seconds: Family<Of, Histogram>,
    memory_bytes: Family<Of, Gauge>,
}

impl Default for Telemetry {
    fn default() -> Self {
        let (calls, seconds, memory_bytes) =
            (Family::default(), Family::new_with_constructor(histogram as fn() -> Histogram), Family::default());
        let observed = Observed::default();
        let mut registry = Registry::with_prefix("guesthouse");
        registry.register("calls", "Callbacks of a guest that ended, by how they ended", calls.clone());
        registry.register_with_unit("call", "Time of callbacks from admission to end", Unit::Seconds, seconds.clone());
        registry.register_with_unit("guest_memory", "Linear memory of the live instances of a guest", Unit::Bytes, memory_bytes.clone());
        registry.register_collector(Box::new(observed.clone()));
        Self(Arc::new(Inner { registry, observed, calls, seconds, memory_bytes }))
    }
}

impl Telemetry {
    /// What is counted of that guest.
    pub fn of_guest(&self, guest: &str) -> GuestFigures {
        let of = || Of { guest: guest.to_owned() };
        let calls = Ended::ALL.map(|how| self.0.calls.get_or_create_owned(&OfOutcome { guest: guest.to_owned(), outcome: how.as_str() }));
        GuestFigures(Arc::new(Counted {
            calls,
            seconds: self.0.seconds.get_or_create_owned(&of()),
            memory_bytes: self.0.memory_bytes.get_or_create_owned(&of()),
        }))
    }

    /// A figure that is asked for whenever the text is made; `None` leaves it out. It takes the place of one of the same name.
    pub fn observe(&self, name: &'static str, help: &'static str, read: impl Fn() -> Option<usize> + Send + Sync + 'static) {
        self.add(name, help, Read::Host(Box::new(read)));
    }

    /// The same, by guest.
    pub fn observe_guests(&self, name: &'static str, help: &'static str, read: impl Fn() -> Vec<(String, usize)> + Send + Sync + 'static) {
        self.add(name, help, Read::Guests(Box::new(read)));
    }

    fn add(&self, name: &'static str, help: &'static str, read: Read) {
        lock(&self.0.observed.0).insert(name, (help, read));
    }

    /// Everything as text, in the form that Prometheus reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.0.registry);
        text
    }
}

/// Figures that others keep, by name.
#[derive(Clone, Default)]
struct Observed(Arc<Mutex<BTreeMap<&'static str, (&'static str, Read)>>>);

/// How a figure is read.
enum Read {
    Host(Box<dyn Fn() -> Option<usize> + Send + Sync>),
    Guests(Box<dyn Fn() -> Vec<(String, usize)> + Send + Sync>),
}

impl std::fmt::Debug for Observed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Observed").finish_non_exhaustive()
    }
}

impl Collector for Observed {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (name, (help, read)) in lock(&self.0).iter() {
            match read {
                Read::Host(read) => {
                    let Some(value) = read() else { continue };
                    ConstGauge::new(int(value)).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
                }
                Read::Guests(read) => {
                    let mut encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
                    for (guest, value) in read() {
                        ConstGauge::new(int(value)).encode(encoder.encode_family(&Of { guest })?)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// No code panics while it holds one of these locks; were it ever to, the value would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn int(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn histogram() -> Histogram {
    let (start, factor, count) = SECONDS_BUCKETS;
    Histogram::new(exponential_buckets(start, factor, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_in_the_text_under_its_guest() {
        let telemetry = Telemetry::default();
        let notes = telemetry.of_guest("notes");
        notes.ended(Ended::Ok, Duration::from_micros(50));
        notes.ended(Ended::of::<()>(&Err(Failure::Trap("boom".into()))), Duration::from_secs(1));
        notes.memory_bytes().inc_by(65_536);
        // Another version of the same guest goes on with the same figures.
        telemetry.of_guest("notes").ended(Ended::Ok, Duration::from_micros(70));
        let text = telemetry.text();
        for line in [
            "guesthouse_calls_total{guest=\"notes\",outcome=\"ok\"} 2",
            "guesthouse_calls_total{guest=\"notes\",outcome=\"crash\"} 1",
            "guesthouse_call_seconds_bucket{le=\"0.0001\",guest=\"notes\"} 2",
            "guesthouse_call_seconds_count{guest=\"notes\"} 3",
            "guesthouse_guest_memory_bytes{guest=\"notes\"} 65536",
            "# EOF",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
        assert_eq!(notes.calls(), [(Ended::Ok, 2), (Ended::Crash, 1)]);
    }

    #[test]
    fn each_way_to_end_counts_in_its_own_place() {
        for (place, how) in Ended::ALL.into_iter().enumerate() {
            assert_eq!(how as usize, place, "{}", how.as_str());
        }
    }
}
