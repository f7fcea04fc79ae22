//! Connects the plain traits to the exported functions.

use std::cell::OnceCell;
use std::marker::PhantomData;

use crate::bindings::{completion, handoff, lifecycle, migration, prompts, resources, subscriptions, tasks, tools};
use crate::server::{Completion, Handoff, Migration, Prompts, Resources, Server, Subscriptions, Tasks, Tools};
use crate::wit::{
    Completions, Error, Owner, PromptOutcome, PromptPage, ReadOutcome, Reference, ResourcePage, ServerInfo, Task, TemplatePage,
    ToolOutcome, ToolPage,
};

/// Where the server of an instance lives.
pub struct Slot<S>(OnceCell<S>);

// SAFETY: only `export!` makes slots, and only for WebAssembly, whose components here have one thread.
unsafe impl<S> Sync for Slot<S> {}

impl<S> Slot<S> {
    /// An empty slot.
    #[expect(clippy::new_without_default, reason = "it is made in a static")]
    pub const fn new() -> Self {
        Slot(OnceCell::new())
    }
}

/// Implemented by `export!`: a static cannot be generic.
pub trait Instance: Server {
    /// The server's slot.
    fn slot() -> &'static Slot<Self>;
}

/// The type that implements the generated traits for `S`.
pub struct Exported<S>(PhantomData<S>);

fn server<S: Instance>() -> &'static S {
    match S::slot().0.get() {
        Some(server) => server,
        None => panic!("a callback came before init"),
    }
}

impl<S: Instance> lifecycle::exports::guesthouse::mcp::lifecycle::Guest for Exported<S> {
    fn describe() -> ServerInfo {
        crate::host::report_panics();
        S::describe()
    }

    fn init(config: String) -> Result<(), String> {
        crate::host::report_panics();
        let server = S::init(&config)?;
        S::slot().0.set(server).map_err(|_| "init was called twice".into())
    }
}

impl<S: Instance + Tools> tools::exports::guesthouse::mcp::tools::Guest for Exported<S> {
    fn list_tools(cursor: Option<String>) -> Result<ToolPage, Error> {
        server::<S>().list_tools(cursor.as_deref())
    }

    fn call_tool(name: String, arguments: String) -> Result<ToolOutcome, Error> {
        server::<S>().call_tool(&name, &arguments)
    }
}

impl<S: Instance + Resources> resources::exports::guesthouse::mcp::resources::Guest for Exported<S> {
    fn list_resources(cursor: Option<String>) -> Result<ResourcePage, Error> {
        server::<S>().list_resources(cursor.as_deref())
    }

    fn list_templates(cursor: Option<String>) -> Result<TemplatePage, Error> {
        server::<S>().list_templates(cursor.as_deref())
    }

    fn read_resource(uri: String) -> Result<ReadOutcome, Error> {
        server::<S>().read_resource(&uri)
    }
}

impl<S: Instance + Subscriptions> subscriptions::exports::guesthouse::mcp::subscriptions::Guest for Exported<S> {
    fn subscribe(uri: String) -> Result<(), Error> {
        server::<S>().subscribe(&uri)
    }

    fn unsubscribe(uri: String) -> Result<(), Error> {
        server::<S>().unsubscribe(&uri)
    }
}

impl<S: Instance + Prompts> prompts::exports::guesthouse::mcp::prompts::Guest for Exported<S> {
    fn list_prompts(cursor: Option<String>) -> Result<PromptPage, Error> {
        server::<S>().list_prompts(cursor.as_deref())
    }

    fn get_prompt(name: String, arguments: Vec<(String, String)>) -> Result<PromptOutcome, Error> {
        server::<S>().get_prompt(&name, &arguments)
    }
}

impl<S: Instance + Completion> completion::exports::guesthouse::mcp::completion::Guest for Exported<S> {
    fn complete(reference: Reference, argument: String, value: String, resolved: Vec<(String, String)>) -> Result<Completions, Error> {
        server::<S>().complete(&reference, &argument, &value, &resolved)
    }
}

impl<S: Instance + Tasks> tasks::exports::guesthouse::mcp::tasks::Guest for Exported<S> {
    fn get_task(id: String) -> Result<Task, Error> {
        server::<S>().get_task(&id)
    }

    fn update_task(id: String, answered: Vec<String>) -> Result<(), Error> {
        server::<S>().update_task(&id, &answered)
    }

    fn cancel_task(id: String) -> Result<(), Error> {
        server::<S>().cancel_task(&id)
    }
}

impl<S: Instance + Migration> migration::exports::guesthouse::mcp::migration::Guest for Exported<S> {
    fn migrate(from_version: String, owner: Owner) -> Result<(), String> {
        server::<S>().migrate(&from_version, &owner)
    }
}

impl<S: Instance + Handoff> handoff::exports::guesthouse::mcp::handoff::Guest for Exported<S> {
    fn save() -> Result<Vec<u8>, String> {
        server::<S>().save()
    }

    fn restore(from_version: String, saved: Vec<u8>) -> Result<(), String> {
        server::<S>().restore(&from_version, &saved)
    }
}
