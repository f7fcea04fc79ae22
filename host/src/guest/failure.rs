//! The ways in which one call can fail, and how wasmtime's errors become one of them.

use wasmtime::PoolConcurrencyLimitError;

use super::bindings::types;
use super::log::clean;

/// Longest text that a failure carries into the log.
const FAILURE_TEXT_BYTES_MAX: usize = 2_000;

/// Why a call gave no result. Every variant concerns this call alone: the version goes on serving.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// The guest answered with an error of its own.
    Guest(types::Error),
    /// The guest crashed; the text is for the log.
    Trap(String),
    /// The wall-clock deadline passed, whether the guest computed or waited.
    Deadline,
    /// The guest used more processor time than it may.
    CpuBudget,
    /// The guest crashed after it was refused more memory or table space.
    Memory,
    /// The guest handed over more data at once than it may.
    OutputTooLarge {
        /// The limit that was passed; how much more there was is not known, since the rest was never copied.
        bytes: usize,
    },
    /// The instance could not start: `init` refused or crashed, or the exports do not fit the contract. For the log.
    StartFailed(String),
    /// As many calls of this guest, or instances of its engine, are alive as may be.
    Busy,
    /// As many calls of this caller are alive as may be.
    TooMany,
    /// What the callback relied on was changed by another call, and it cannot be run again, or lost each time.
    StateConflict,
    /// What the callback wrote could not be saved: it is more than the guest may keep, or the storage failed. For the log.
    NotSaved(String),
    /// The component does not export the interface of that name.
    NotExported(&'static str),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Guest(error) => write!(f, "the guest answered with an error: {error:?}"),
            Failure::Trap(text) => write!(f, "the guest crashed: {text}"),
            Failure::Deadline => f.write_str("the guest did not finish before its deadline"),
            Failure::CpuBudget => f.write_str("the guest used up its processor time"),
            Failure::Memory => f.write_str("the guest ran out of the memory it may use"),
            Failure::OutputTooLarge { bytes } => {
                write!(f, "the guest handed over more than {bytes} bytes at once")
            }
            Failure::StartFailed(text) => write!(f, "the guest did not start: {text}"),
            Failure::Busy => f.write_str("too many calls of this guest are running"),
            Failure::TooMany => f.write_str("too many calls of this caller are running"),
            Failure::StateConflict => f.write_str("other calls changed the state that this one relied on"),
            Failure::NotSaved(text) => write!(f, "what the guest wrote could not be saved: {text}"),
            Failure::NotExported(interface) => {
                write!(f, "the guest does not export guesthouse:mcp/{interface}")
            }
        }
    }
}

impl std::error::Error for Failure {}

/// What was going on when wasmtime reported an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Instantiation, `init`, and the look-up of exports.
    Start,
    /// The callback itself.
    Callback,
}

/// Names the failure behind an error of wasmtime.
pub(crate) fn classify(error: &wasmtime::Error, stage: Stage, memory_refused: bool, output_bytes_max: usize) -> Failure {
    if error.is::<PoolConcurrencyLimitError>() {
        return Failure::Busy;
    }
    if output_exhausted(error) {
        return Failure::OutputTooLarge { bytes: output_bytes_max };
    }
    if memory_refused {
        return Failure::Memory;
    }
    let text = clean(&format!("{error:#}"), FAILURE_TEXT_BYTES_MAX);
    match stage {
        Stage::Start => Failure::StartFailed(text),
        Stage::Callback => Failure::Trap(text),
    }
}

/// Whether wasmtime stopped copying because the guest handed over too much. The error's type is private to
/// wasmtime, so its words must do; a test with a guest that answers too much fails if they change.
fn output_exhausted(error: &wasmtime::Error) -> bool {
    error.chain().any(|cause| cause.to_string().contains("fuel allocated for hostcalls has been exhausted"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stage_decides_between_start_and_trap() {
        let error = wasmtime::Error::msg("boom\u{1b}[31m");
        assert_eq!(classify(&error, Stage::Start, false, 1), Failure::StartFailed("boom\\u{1b}[31m".into()));
        assert_eq!(classify(&error, Stage::Callback, false, 1), Failure::Trap("boom\\u{1b}[31m".into()));
        assert_eq!(classify(&error, Stage::Callback, true, 1), Failure::Memory);
    }
}
