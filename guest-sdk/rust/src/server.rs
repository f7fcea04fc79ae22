//! The contract as plain traits, one per interface. [`crate::server`] implements them; so can you.

use crate::wit::{
    Completions, Error, Owner, PromptOutcome, PromptPage, ReadOutcome, Reference, ResourcePage, ServerInfo, Task, TemplatePage,
    ToolOutcome, ToolPage,
};

/// What every guest has. A value of the type is made for each instance, and serves its callbacks one after the other.
pub trait Server: Sized + 'static {
    /// Who this server is; asked once per version, before anything else.
    fn describe() -> ServerInfo;

    /// Makes the server from the operator's configuration, a JSON object. The error is for the operator.
    fn init(config: &str) -> Result<Self, String>;
}

/// Tools that a model may call.
pub trait Tools {
    /// One page of the tools. The host hands back the `next` of the page before.
    fn list_tools(&self, cursor: Option<&str>) -> Result<ToolPage, Error>;

    /// Runs a tool. `arguments` is a JSON object that the host has checked against the tool's schema.
    fn call_tool(&self, name: &str, arguments: &str) -> Result<ToolOutcome, Error>;
}

/// Resources that a client may read.
pub trait Resources {
    /// One page of the resources; none by default.
    fn list_resources(&self, cursor: Option<&str>) -> Result<ResourcePage, Error> {
        let _ = cursor;
        Ok(ResourcePage::default())
    }

    /// One page of the templates; none by default.
    fn list_templates(&self, cursor: Option<&str>) -> Result<TemplatePage, Error> {
        let _ = cursor;
        Ok(TemplatePage::default())
    }

    /// The contents of a resource, listed or not.
    fn read_resource(&self, uri: &str) -> Result<ReadOutcome, Error>;
}

/// Told when the first client begins, and the last one stops, watching a resource.
pub trait Subscriptions {
    /// Someone watches now. An error refuses it.
    fn subscribe(&self, uri: &str) -> Result<(), Error>;

    /// Nobody does any more.
    fn unsubscribe(&self, uri: &str) -> Result<(), Error> {
        let _ = uri;
        Ok(())
    }
}

/// Prompts that a person may pick.
pub trait Prompts {
    /// One page of the prompts.
    fn list_prompts(&self, cursor: Option<&str>) -> Result<PromptPage, Error>;

    /// The messages of a prompt.
    fn get_prompt(&self, name: &str, arguments: &[(String, String)]) -> Result<PromptOutcome, Error>;
}

/// Suggestions while a person types an argument of a prompt or a variable of a template.
pub trait Completion {
    /// Values that begin with, or otherwise suit, what was typed. `resolved` are the arguments that are settled already.
    fn complete(&self, reference: &Reference, argument: &str, value: &str, resolved: &[(String, String)]) -> Result<Completions, Error>;
}

/// For servers with a job system of their own; the host's tasks need none of it.
pub trait Tasks {
    /// The task as it is now.
    fn get_task(&self, id: &str) -> Result<Task, Error>;

    /// Answers came in; [`crate::Ctx::answer`] has them under these keys.
    fn update_task(&self, id: &str, answered: &[String]) -> Result<(), Error>;

    /// The client wants it stopped.
    fn cancel_task(&self, id: &str) -> Result<(), Error>;
}

/// Brings saved state up to date before a new version takes over.
pub trait Migration {
    /// Called once per stored namespace, all of it in one transaction.
    fn migrate(&self, from_version: &str, owner: &Owner) -> Result<(), String>;
}

/// Memory that survives a swap, an eviction or a restart, where instances live longer than a call.
pub trait Handoff {
    /// What this instance knows.
    fn save(&self) -> Result<Vec<u8>, String>;

    /// Takes over what another instance, perhaps of an older version, has saved.
    fn restore(&self, from_version: &str, saved: &[u8]) -> Result<(), String>;
}

/// Exports a server with the interfaces that it implements: `export!(MyServer: tools, prompts);`. The interfaces decide which capabilities
/// clients see. Does nothing where the target is not WebAssembly.
#[macro_export]
macro_rules! export {
    ($server:ty $(: $($interface:ident),* $(,)?)?) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            type GuesthouseExported = $crate::rt::Exported<$server>;
            impl $crate::rt::Instance for $server {
                fn slot() -> &'static $crate::rt::Slot<Self> {
                    static SLOT: $crate::rt::Slot<$server> = $crate::rt::Slot::new();
                    &SLOT
                }
            }
            $crate::bindings::lifecycle::export!(GuesthouseExported with_types_in $crate::bindings::lifecycle);
            $($($crate::bindings::$interface::export!(GuesthouseExported with_types_in $crate::bindings::$interface);)*)?
        };
    };
}
