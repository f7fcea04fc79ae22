//! What the calls of one guest may use, as the operator says it.

use super::units::{Size, Span};
use crate::guest::{CallLimits, Keeping};
use serde::Deserialize;

/// Table `[guest.<name>.limits]`: bounds of one guest's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuestLimits {
    /// Linear memory of one instance, in all.
    pub memory: Size,
    /// Processor time of one call.
    pub cpu: Span,
    /// Time of one call by the clock.
    pub wall: Span,
    /// The same of a call that runs as a task. Its processor time grows in proportion.
    pub task: Span,
    /// What one call may return, in all.
    pub output: Size,
    /// Elements of all tables of one instance.
    pub table: usize,
    /// Log messages and lines of output in one call.
    pub logs: u32,
    /// Progress reports in one call.
    pub progress: u32,
    /// Calls at the same time.
    pub concurrency: usize,
    /// HTTP requests in one call.
    pub requests: u32,
    /// HTTP requests at the same time, of all its calls together.
    pub requests_at_once: usize,
    /// Time of one HTTP request, from its beginning to the end of the response.
    pub request_wall: Span,
    /// Time to resolve the name of a host, and again to connect to it.
    pub request_connect: Span,
    /// Largest body of an HTTP request.
    pub request: Size,
    /// Largest body of a response to one.
    pub response: Size,
    /// Largest header section of a response.
    pub response_headers: Size,
    /// Those of them that may be one principal's; see [`super::auth::AuthConfig::cap`] where the key is absent.
    pub per_principal: Option<usize>,
    /// Keys that it may save, in all its buckets together.
    pub keys: usize,
    /// Length of one value that it saves.
    pub value: Size,
    /// All keys and values that it saves.
    pub state: Size,
    /// Instances that are kept at a time, where they outlive a call.
    pub instances: usize,
    /// How long a kept instance may be idle.
    pub instance_idle: Span,
    /// How long a call waits for its turn on a kept instance.
    pub turn: Span,
    /// What an instance may save of its memory before it goes.
    pub saved: Size,
    /// What is kept of that, for all that may come back.
    pub saved_total: Size,
}

impl Default for GuestLimits {
    /// What a call may use by default is said in one place, with the limits that are enforced.
    fn default() -> Self {
        let (limits, keeping) = (CallLimits::default(), Keeping::default());
        Self {
            memory: Size(limits.memory_bytes as u64),
            cpu: Span(limits.cpu_ms),
            wall: Span(limits.wall_ms),
            task: Span(limits.task_wall_ms),
            output: Size(limits.output_bytes as u64),
            table: limits.table_elements,
            logs: limits.log_lines,
            progress: limits.progress,
            concurrency: limits.concurrency,
            requests: limits.requests,
            requests_at_once: limits.requests_at_once,
            request_wall: Span(limits.request_wall_ms),
            request_connect: Span(limits.request_connect_ms),
            request: Size(limits.request_bytes as u64),
            response: Size(limits.response_bytes as u64),
            response_headers: Size(limits.response_header_bytes as u64),
            per_principal: None,
            keys: 10_000,
            value: Size(1 << 20),
            state: Size(64 << 20),
            instances: keeping.instances_max,
            instance_idle: Span(keeping.idle_ms),
            turn: Span(keeping.turn_ms),
            saved: Size(keeping.saved_bytes_max as u64),
            saved_total: Size(keeping.saved_total_bytes_max as u64),
        }
    }
}
