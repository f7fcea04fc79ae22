//! What one call may use, and the limiter that wasmtime asks about memory and tables.

use prometheus_client::metrics::gauge::Gauge;
use wasmtime::ResourceLimiter;

use crate::principals::PrincipalCap;

/// Core instances that a component may consist of; the pools of the engines are sized for as many in each call.
pub(crate) const CORE_INSTANCES_MAX: usize = 64;

/// Limits of one call, each finite. The unit stands last in the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallLimits {
    /// Wall-clock time from the start of the call to its end, waiting included.
    pub wall_ms: u64,
    /// The same for a call that runs as a task.
    pub task_wall_ms: u64,
    /// Processor time of the guest, and of the host's work on its behalf.
    pub cpu_ms: u64,
    /// All linear memories of the instance together.
    pub memory_bytes: usize,
    /// All tables of the instance together.
    pub table_elements: usize,
    /// Core instances inside the component.
    pub core_instances: usize,
    /// Resource handles that the guest may hold at a time.
    pub handles: usize,
    /// Data that the guest may hand to the host at once, as the host has to hold it: a result, or the
    /// arguments of an imported function.
    pub output_bytes: usize,
    /// Lines that a call may write to the log, by `context.log`, stdout and stderr together.
    pub log_lines: u32,
    /// Length of a line in the host's log; what is longer is cut.
    pub log_line_bytes: usize,
    /// Length of the data of one `context.log`; what is longer is not sent to the client.
    pub log_data_bytes: usize,
    /// Log lines a second, counted over all calls of the guest together.
    pub log_lines_per_s: u32,
    /// Progress reports that one call sends. The last of them is kept for the newest report there is when the call ends.
    pub progress: u32,
    /// Progress reports a second within one call; of what comes faster, the newest is sent when the call ends.
    pub progress_per_s: u32,
    /// Length of the message in a progress report; what is longer is cut.
    pub progress_message_bytes: usize,
    /// Distinct changes that a call may announce; more resource updates become one `resources-changed`.
    pub changes: usize,
    /// Length of a resource's URI in a change; a longer one becomes `resources-changed`.
    pub change_uri_bytes: usize,
    /// Calls of this version alive at a time.
    pub concurrency: usize,
    /// HTTP requests that a call may send.
    pub requests: u32,
    /// HTTP requests of all calls of the guest together that may be under way at a time; more wait.
    pub requests_at_once: usize,
    /// Time from an HTTP request's beginning to the end of its response, which ends with the call in any case.
    pub request_wall_ms: u64,
    /// Time to resolve a name, and again to connect to it.
    pub request_connect_ms: u64,
    /// Body of an HTTP request.
    pub request_bytes: usize,
    /// Body of the response to it.
    pub response_bytes: usize,
    /// Header section of the response.
    pub response_header_bytes: usize,
    /// Those of them that may be one principal's.
    pub per_principal: PrincipalCap,
}

impl Default for CallLimits {
    fn default() -> Self {
        CallLimits {
            wall_ms: 30_000,
            task_wall_ms: 3_600_000,
            cpu_ms: 10_000,
            memory_bytes: 64 << 20,
            table_elements: 20_000,
            core_instances: CORE_INSTANCES_MAX,
            handles: 4_096,
            output_bytes: 4 << 20,
            log_lines: 1_000,
            log_line_bytes: 4 << 10,
            log_data_bytes: 64 << 10,
            log_lines_per_s: 500,
            progress: 1_000,
            progress_per_s: 100,
            progress_message_bytes: 4 << 10,
            changes: 64,
            change_uri_bytes: 4 << 10,
            concurrency: 64,
            requests: 64,
            requests_at_once: 64,
            request_wall_ms: 60_000,
            request_connect_ms: 10_000,
            request_bytes: 4 << 20,
            response_bytes: 16 << 20,
            response_header_bytes: 64 << 10,
            per_principal: PrincipalCap::of_all(64),
        }
    }
}

impl CallLimits {
    /// Processor time of a call that runs as a task: it has more time, and the same share of it.
    pub fn task_cpu_ms(&self) -> u64 {
        let scaled = u128::from(self.cpu_ms) * u128::from(self.task_wall_ms) / u128::from(self.wall_ms.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX).max(self.cpu_ms)
    }
}

/// Counts the memory and tables of one store. It remembers whether it ever refused, because a guest that is
/// refused memory usually crashes a moment later, and the crash alone does not tell why.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory_bytes: usize,
    /// All memory of the guest, of which this one's is part.
    counted: Gauge,
    memory_bytes_left: usize,
    table_elements_left: usize,
    core_instances: usize,
    refused: bool,
}

impl Limiter {
    pub(crate) fn new(limits: &CallLimits, counted: &Gauge) -> Limiter {
        Limiter {
            memory_bytes: 0,
            counted: counted.clone(),
            memory_bytes_left: limits.memory_bytes,
            table_elements_left: limits.table_elements,
            core_instances: limits.core_instances.min(CORE_INSTANCES_MAX),
            refused: false,
        }
    }

    /// What was refused in an earlier callback says nothing of this one.
    pub(crate) fn forget_refusal(&mut self) {
        self.refused = false;
    }

    /// Whether the guest asked for more than it may have.
    pub(crate) fn refused(&self) -> bool {
        self.refused
    }
}

impl Drop for Limiter {
    fn drop(&mut self) {
        self.counted.dec_by(i64::try_from(self.memory_bytes).unwrap_or(i64::MAX));
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let fits = take(&mut self.memory_bytes_left, current, desired, maximum);
        self.refused |= !fits;
        if fits {
            let more = desired.saturating_sub(current);
            self.memory_bytes = self.memory_bytes.saturating_add(more);
            self.counted.inc_by(i64::try_from(more).unwrap_or(i64::MAX));
        }
        Ok(fits)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let fits = take(&mut self.table_elements_left, current, desired, maximum);
        self.refused |= !fits;
        Ok(fits)
    }

    fn instances(&self) -> usize {
        self.core_instances
    }

    // A core instance rarely has more than one of each, and the sizes are what costs.
    fn tables(&self) -> usize {
        self.core_instances.saturating_mul(4)
    }

    fn memories(&self) -> usize {
        self.core_instances
    }
}

/// Takes the growth out of what is left. Growth beyond the `maximum`, which would fail anyway, takes nothing.
fn take(left: &mut usize, current: usize, desired: usize, maximum: Option<usize>) -> bool {
    if maximum.is_some_and(|maximum| desired > maximum) {
        return false;
    }
    match left.checked_sub(desired.saturating_sub(current)) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_share_one_budget_and_a_refusal_is_remembered() {
        let mut limiter = Limiter::new(&CallLimits { memory_bytes: 10, ..CallLimits::default() }, &Gauge::default());
        for (current, desired, fits) in [(0, 6, true), (0, 4, true), (4, 4, true)] {
            assert_eq!(limiter.memory_growing(current, desired, None).unwrap(), fits);
        }
        assert!(!limiter.refused());
        assert!(!limiter.memory_growing(6, 7, None).unwrap());
        assert!(limiter.refused());
    }

    #[test]
    fn memory_is_counted_for_as_long_as_it_is_there() {
        let counted = Gauge::default();
        let mut limiter = Limiter::new(&CallLimits { memory_bytes: 10, ..CallLimits::default() }, &counted);
        for (current, desired, after) in [(0, 4, 4), (4, 6, 6), (6, 11, 6), (0, 4, 10)] {
            limiter.memory_growing(current, desired, None).unwrap();
            assert_eq!(counted.get(), after);
        }
        drop(limiter);
        assert_eq!(counted.get(), 0);
    }

    #[test]
    fn growth_beyond_the_declared_maximum_takes_nothing() {
        let mut limiter = Limiter::new(&CallLimits { table_elements: 10, ..CallLimits::default() }, &Gauge::default());
        assert!(!limiter.table_growing(0, 9, Some(8)).unwrap());
        assert!(limiter.table_growing(0, 10, Some(10)).unwrap());
    }
}
