//! What clients are told without asking each time: events, the filter of `subscriptions/listen`, and its messages.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::effect::{CallContext, PeerLimits, TransportKind};
use crate::error::{INVALID_PARAMS, RpcError};
use crate::json::{Object, string};
use crate::message::{Params, RequestId, entries, meta_key, text};
use crate::model::Task;
use crate::revision::Revision;

/// Something that happened, for whoever listens.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The list of tools is a different one now.
    ToolsChanged,
    /// The list of prompts is a different one now.
    PromptsChanged,
    /// The list of resources is a different one now.
    ResourcesChanged,
    /// A resource has new contents.
    ResourceUpdated {
        /// The resource.
        uri: Arc<str>,
    },
    /// A task is in another state now, which is this one.
    TaskChanged(TaskState),
}

/// A task as it was at some moment. Equal to itself alone.
#[derive(Clone, Debug)]
pub struct TaskState(pub Arc<Task>);

impl PartialEq for TaskState {
    fn eq(&self, other: &TaskState) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What a client wants to hear of, or what it will hear of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Changes of the list of tools.
    pub tools: bool,
    /// Changes of the list of prompts.
    pub prompts: bool,
    /// Changes of the list of resources.
    pub resources: bool,
    /// Updates of these resources, each once.
    pub uris: Vec<String>,
    /// The client asked for resources at all, so that an empty list says that it gets none.
    pub names_uris: bool,
    /// States of these tasks, each once.
    pub tasks: Vec<String>,
    /// The client asked for tasks at all.
    pub names_tasks: bool,
}

/// Makes the messages of one `subscriptions/listen`, each of which carries its id.
#[derive(Clone, Debug)]
pub struct Subscription {
    id: RequestId,
    transport: TransportKind,
}

impl Event {
    fn method(&self) -> &'static str {
        match self {
            Event::ToolsChanged => "notifications/tools/list_changed",
            Event::PromptsChanged => "notifications/prompts/list_changed",
            Event::ResourcesChanged => "notifications/resources/list_changed",
            Event::ResourceUpdated { .. } => "notifications/resources/updated",
            Event::TaskChanged(_) => "notifications/tasks",
        }
    }

    /// The notification as a session of the handshake era gets it; `None` if its revision has none.
    pub(crate) fn to_session(&self, revision: Revision) -> Option<Bytes> {
        if let Event::TaskChanged(TaskState(task)) = self {
            return revision.has_task_param().then(|| task.status_notification());
        }
        let mut out = Vec::with_capacity(128);
        let mut object = Object::new(&mut out);
        object.text("jsonrpc", "2.0");
        object.text("method", self.method());
        if let Event::ResourceUpdated { uri } = self {
            let mut params = Object::new(object.key("params"));
            params.text("uri", uri);
            params.end();
        }
        object.end();
        Some(Bytes::from(out))
    }
}

impl Filter {
    /// Reads the member `notifications`. What no revision knows is not honoured, and no reason to refuse the rest.
    pub(crate) fn read(params: &Params<'_>) -> Result<Filter, RpcError> {
        let Some(wanted) = params.get("notifications") else {
            return Err(RpcError::missing_params(&["notifications"]));
        };
        let Some(members) = entries(wanted) else {
            return Err(rejected("invalid_subscription_filter", "`notifications` must be an object"));
        };
        let mut filter = Filter::default();
        for (name, value) in members {
            match name.as_ref() {
                "toolsListChanged" => filter.tools = flag(&name, value)?,
                "promptsListChanged" => filter.prompts = flag(&name, value)?,
                "resourcesListChanged" => filter.resources = flag(&name, value)?,
                "resourceSubscriptions" => {
                    filter.names_uris = true;
                    filter.uris = uris(value)?;
                }
                "taskIds" => {
                    filter.names_tasks = true;
                    filter.tasks = task_ids(value)?;
                }
                _ => {}
            }
        }
        Ok(filter)
    }

    /// Refuses a filter that the server would have to keep too much for.
    pub(crate) fn check(&self, limits: &PeerLimits) -> Result<(), RpcError> {
        if self.uris.len() > limits.subscription_uris_max {
            let text = format!("At most {} resources can be subscribed to at a time", limits.subscription_uris_max);
            return Err(rejected("subscription_filter_uri_limit", &text));
        }
        if self.tasks.len() > limits.subscription_uris_max {
            let text = format!("At most {} tasks can be subscribed to at a time", limits.subscription_uris_max);
            return Err(rejected("subscription_filter_task_limit", &text));
        }
        let bytes: usize = self.uris.iter().chain(&self.tasks).map(String::len).sum();
        if bytes > limits.subscription_uri_bytes_max {
            let text = format!("The URIs of a subscription may have {} bytes in all", limits.subscription_uri_bytes_max);
            return Err(rejected("subscription_filter_too_large", &text));
        }
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut object = Object::new(out);
        for (name, wanted) in
            [("toolsListChanged", self.tools), ("promptsListChanged", self.prompts), ("resourcesListChanged", self.resources)]
        {
            if wanted {
                object.boolean(name, true);
            }
        }
        if self.names_uris {
            object.array("resourceSubscriptions", &self.uris, |out, uri| string(out, uri));
        }
        if self.names_tasks {
            object.array("taskIds", &self.tasks, |out, id| string(out, id));
        }
        object.end();
    }
}

impl Subscription {
    /// The subscription that this call opens.
    pub fn of(context: &CallContext) -> Subscription {
        Subscription { id: context.request_id.clone(), transport: context.transport }
    }

    /// The first message: what will be sent.
    pub fn acknowledged(&self, honoured: &Filter) -> Bytes {
        self.notification("notifications/subscriptions/acknowledged", |params| honoured.write(params.key("notifications")))
    }

    /// Tells of an event.
    pub fn event(&self, event: &Event) -> Bytes {
        self.notification(event.method(), |params| match event {
            Event::ResourceUpdated { uri } => params.text("uri", uri),
            Event::TaskChanged(TaskState(task)) => task.write_detailed(params, Revision::LATEST_MODERN),
            Event::ToolsChanged | Event::PromptsChanged | Event::ResourcesChanged => {}
        })
    }

    /// Says that the server ends the subscription, ahead of the response; `None` where the end of the stream says it.
    ///
    /// The page on cancellation has the server always send this, the schema of 2026-07-28 on stdio alone, and over HTTP
    /// the notification does not exist. So it goes where many subscriptions share one channel.
    pub fn cancelled(&self, reason: &str) -> Option<Bytes> {
        match self.transport {
            TransportKind::Http => None,
            TransportKind::Stdio | TransportKind::Memory => Some(self.notification("notifications/cancelled", |params| {
                self.id.write(params.key("requestId"));
                params.text("reason", reason);
            })),
        }
    }

    fn notification(&self, method: &'static str, write: impl FnOnce(&mut Object<'_>)) -> Bytes {
        let mut out = Vec::with_capacity(192);
        let mut object = Object::new(&mut out);
        object.text("jsonrpc", "2.0");
        object.text("method", method);
        let mut params = Object::new(object.key("params"));
        let mut meta = Object::new(params.key("_meta"));
        self.id.write(meta.key(meta_key::SUBSCRIPTION_ID));
        meta.end();
        write(&mut params);
        params.end();
        object.end();
        Bytes::from(out)
    }
}

fn rejected(reason: &str, text: &str) -> RpcError {
    RpcError::new(INVALID_PARAMS, text, &serde_json::json!({ "type": "subscription_rejected", "reason": reason }))
}

fn flag(name: &str, value: &RawValue) -> Result<bool, RpcError> {
    match value.get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(rejected("invalid_subscription_filter", &format!("`{name}` must be true or false"))),
    }
}

/// A list of URIs, each of them once.
fn uris(value: &RawValue) -> Result<Vec<String>, RpcError> {
    texts(value, is_uri).ok_or_else(|| rejected("invalid_resource_subscription", "`resourceSubscriptions` must be a list of URIs"))
}

/// A list of the ids of tasks, each of them once.
fn task_ids(value: &RawValue) -> Result<Vec<String>, RpcError> {
    texts(value, |id| !id.is_empty()).ok_or_else(|| rejected("invalid_task_subscription", "`taskIds` must be a list of the ids of tasks"))
}

/// A list of texts, each of them once.
fn texts(value: &RawValue, sound: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let listed: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
    let mut known = HashSet::with_capacity(listed.len());
    let mut texts = Vec::with_capacity(listed.len());
    for item in listed {
        let item = text(item).filter(|item| sound(item))?;
        if known.insert(item.clone()) {
            texts.push(item.into_owned());
        }
    }
    Some(texts)
}

/// Has a scheme, and nothing that no URI has.
fn is_uri(text: &str) -> bool {
    let scheme = text.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    }) && !text.chars().any(|character| character.is_control())
}
