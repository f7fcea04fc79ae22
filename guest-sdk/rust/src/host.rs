//! The functions that the host offers; outside WebAssembly, [`crate::testing`] stands in for it.

#[cfg(target_family = "wasm")]
pub(crate) use crate::bindings::imports::guesthouse::mcp::changes::{prompts_changed, resource_updated, resources_changed, tools_changed};
#[cfg(target_family = "wasm")]
pub(crate) use crate::bindings::imports::guesthouse::mcp::context::{answer, log, report_progress, request, state, time_left_ms};
#[cfg(not(target_family = "wasm"))]
pub(crate) use crate::testing::stand_in::{
    answer, log, prompts_changed, report_progress, request, resource_updated, resources_changed, state, time_left_ms, tools_changed,
};

/// A panic ends the instance, and its text would be lost where there is no stderr.
pub(crate) fn report_panics() {
    #[cfg(target_family = "wasm")]
    std::panic::set_hook(Box::new(|info| {
        log(crate::wit::LogLevel::Error, Some("panic"), &crate::json::quote(&info.to_string()));
    }));
}
