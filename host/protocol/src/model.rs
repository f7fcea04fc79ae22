//! What is asked and what is answered: one type for every method, none of them tied to a revision.

mod common;
mod completion;
mod content;
mod lifecycle;
mod logging;
mod prompts;
pub mod questions;
mod requests;
mod resources;
pub mod tasks;
mod tools;

use serde_json::value::RawValue;

use crate::json::{Json, Object, raw};
use crate::message::{RequestId, entries, meta_key};
use crate::method::Method;
use crate::revision::{Mode, Revision};
use crate::subscription::Filter;
pub use common::{Annotations, CacheHint, CacheScope, Icon, IconTheme, Implementation, Role};
pub use completion::{COMPLETION_VALUES_MAX, Completion, Reference};
pub use content::{Body, Content, Media, ResourceContents};
pub use lifecycle::{Capabilities, InitializeParams, Profile};
pub use logging::{LogLevel, UnknownLevel};
pub use prompts::{GetPromptResult, Prompt, PromptArgument, PromptMessage, PromptPage};
pub use questions::{InputRequired, Question, Rounds};
pub(crate) use requests::{Asked, asked, is_implementation, retry, task_asked};
pub use resources::{ReadResult, Resource, ResourcePage, ResourceTemplate, TemplatePage};
pub use tasks::{Finished, Task, TaskAsked, TaskPage};
pub use tools::{CallToolResult, TaskSupport, Tool, ToolAnnotations, ToolPage};

/// What a client asks of the dispatcher. Methods that the protocol answers by itself (`ping`, `logging/setLevel`)
/// are not here.
///
/// A method becomes a variant here, a row in
/// [`Method`], and a function in `requests.rs`.
#[derive(Clone, Debug)]
pub enum Request {
    /// `initialize`: answer with [`Reply::Profile`].
    Initialize(Box<InitializeParams>),
    /// `server/discover`: answer with [`Reply::Profile`].
    Discover,
    /// `tools/list`: answer with [`Reply::Tools`].
    ListTools {
        /// Where the page begins.
        cursor: Option<String>,
    },
    /// `tools/call`: answer with [`Reply::Tool`].
    CallTool {
        /// The tool.
        name: String,
        /// An object; none if the client sent none.
        arguments: Option<Json>,
    },
    /// `resources/list`: answer with [`Reply::Resources`].
    ListResources {
        /// Where the page begins.
        cursor: Option<String>,
    },
    /// `resources/templates/list`: answer with [`Reply::Templates`].
    ListTemplates {
        /// Where the page begins.
        cursor: Option<String>,
    },
    /// `resources/read`: answer with [`Reply::Resource`].
    ReadResource {
        /// The resource.
        uri: String,
    },
    /// `resources/subscribe`: answer with [`Reply::Empty`].
    Subscribe {
        /// The resource.
        uri: String,
    },
    /// `resources/unsubscribe`: answer with [`Reply::Empty`].
    Unsubscribe {
        /// The resource.
        uri: String,
    },
    /// `subscriptions/listen`: [`Reply::Empty`] when the server ends it.
    Listen(Filter),
    /// `prompts/list`: answer with [`Reply::Prompts`].
    ListPrompts {
        /// Where the page begins.
        cursor: Option<String>,
    },
    /// `prompts/get`: answer with [`Reply::Prompt`].
    GetPrompt {
        /// The prompt.
        name: String,
        /// What was filled in, in the client's order.
        arguments: Vec<(String, String)>,
    },
    /// `completion/complete`: answer with [`Reply::Completion`].
    Complete {
        /// What is being filled in.
        reference: Reference,
        /// Which argument or variable of it.
        argument: String,
        /// What the user has typed so far.
        value: String,
        /// What is settled already.
        resolved: Vec<(String, String)>,
    },
    /// `tasks/get`: answer with [`Reply::Task`].
    GetTask {
        /// The task.
        id: String,
    },
    /// `tasks/update`: answer with [`Reply::Empty`].
    UpdateTask {
        /// The task.
        id: String,
        /// An object of answers, by the task's keys.
        answers: Json,
    },
    /// `tasks/cancel`: answer with [`Reply::TaskCancelled`].
    CancelTask {
        /// The task.
        id: String,
    },
    /// `tasks/list`: answer with [`Reply::Tasks`].
    ListTasks {
        /// Where the page begins.
        cursor: Option<String>,
    },
    /// `tasks/result`: answer with [`Reply::TaskResult`].
    TaskResult {
        /// The task.
        id: String,
    },
}

/// What the dispatcher answers when all went well. Each variant answers the methods that [`Request`] names.
#[derive(Clone, Debug)]
pub enum Reply {
    /// For `initialize` and `server/discover`.
    Profile(Box<Profile>),
    /// For `tools/list`.
    Tools(ToolPage),
    /// For `tools/call`.
    Tool(CallToolResult),
    /// For `resources/list`.
    Resources(ResourcePage),
    /// For `resources/templates/list`.
    Templates(TemplatePage),
    /// For `resources/read`.
    Resource(ReadResult),
    /// For `prompts/list`.
    Prompts(PromptPage),
    /// For `prompts/get`.
    Prompt(GetPromptResult),
    /// For `completion/complete`.
    Completion(Completion),
    /// For methods that may ask the client first ([`Method::may_ask`]): the call is run again with the answers.
    InputRequired(Box<InputRequired>),
    /// For a `tools/call` that goes on as a task.
    TaskCreated(Box<Task>),
    /// For `tasks/get`.
    Task(Box<Task>),
    /// For `tasks/cancel`; some revisions want to know what became of the task.
    TaskCancelled(Box<Task>),
    /// For `tasks/list`.
    Tasks(TaskPage),
    /// For `tasks/result`: what the call would have answered, and the task that it ran as.
    TaskResult(Box<Finished>, String),
    /// For methods whose result says nothing.
    Empty,
}

/// A later round of a call that asked the client something (2026-07-28), as the client wrote it. Nothing of it has been
/// verified: that is for whoever sealed the state.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Retry {
    /// An object of the client's answers by key.
    pub input_responses: Option<Json>,
    /// The state that the server sealed, as the client gave it back.
    pub request_state: Option<String>,
}

/// What every result of a connection carries, whatever the method.
pub(crate) struct Stamp<'a> {
    pub(crate) mode: Mode,
    pub(crate) revision: Revision,
    /// The server's identity for modern results; none if it is withheld.
    pub(crate) server_info: Option<&'a RawValue>,
    /// The subscription that the result ends.
    pub(crate) subscription: Option<&'a RequestId>,
}

impl Request {
    /// The method that asks for this.
    pub fn method(&self) -> Method {
        match self {
            Request::Initialize(_) => Method::Initialize,
            Request::Discover => Method::Discover,
            Request::ListTools { .. } => Method::ListTools,
            Request::CallTool { .. } => Method::CallTool,
            Request::ListResources { .. } => Method::ListResources,
            Request::ListTemplates { .. } => Method::ListTemplates,
            Request::ReadResource { .. } => Method::ReadResource,
            Request::Subscribe { .. } => Method::Subscribe,
            Request::Unsubscribe { .. } => Method::Unsubscribe,
            Request::Listen(_) => Method::Listen,
            Request::ListPrompts { .. } => Method::ListPrompts,
            Request::GetPrompt { .. } => Method::GetPrompt,
            Request::Complete { .. } => Method::Complete,
            Request::GetTask { .. } => Method::GetTask,
            Request::UpdateTask { .. } => Method::UpdateTask,
            Request::CancelTask { .. } => Method::CancelTask,
            Request::ListTasks { .. } => Method::ListTasks,
            Request::TaskResult { .. } => Method::TaskResult,
        }
    }
}

impl Reply {
    /// Whether the reply is one that the method may have.
    pub(crate) fn answers(&self, method: Method) -> bool {
        match self {
            Reply::Profile(_) => matches!(method, Method::Initialize | Method::Discover),
            Reply::Tools(_) => method == Method::ListTools,
            Reply::Tool(_) => method == Method::CallTool,
            Reply::Resources(_) => method == Method::ListResources,
            Reply::Templates(_) => method == Method::ListTemplates,
            Reply::Resource(_) => method == Method::ReadResource,
            Reply::Prompts(_) => method == Method::ListPrompts,
            Reply::Prompt(_) => method == Method::GetPrompt,
            Reply::Completion(_) => method == Method::Complete,
            Reply::InputRequired(_) => method.may_ask(),
            Reply::TaskCreated(_) => method == Method::CallTool,
            Reply::Task(_) => method == Method::GetTask,
            Reply::TaskCancelled(_) => method == Method::CancelTask,
            Reply::Tasks(_) => method == Method::ListTasks,
            Reply::TaskResult(..) => method == Method::TaskResult,
            Reply::Empty => {
                let silent = [Method::Ping, Method::SetLevel, Method::Subscribe, Method::Unsubscribe, Method::Listen, Method::UpdateTask];
                silent.contains(&method)
            }
        }
    }

    /// Writes the `result` of a response, in the form of the revision.
    pub(crate) fn write(&self, out: &mut Vec<u8>, stamp: &Stamp<'_>) {
        let revision = stamp.revision;
        let modern = revision >= Revision::V2026_07_28;
        let mut object = Object::new(out);
        if modern {
            object.text("resultType", self.result_type());
        }
        match self {
            Reply::Profile(profile) if modern => profile.write_discover(&mut object, stamp.mode, revision),
            Reply::Profile(profile) => profile.write_initialize(&mut object, revision),
            Reply::Tools(page) => page.write(&mut object, revision),
            Reply::Tool(result) => result.write(&mut object, revision),
            Reply::Resources(page) => page.write(&mut object, revision),
            Reply::Templates(page) => page.write(&mut object, revision),
            Reply::Resource(result) => result.write(&mut object, revision),
            Reply::Prompts(page) => page.write(&mut object, revision),
            Reply::Prompt(result) => result.write(&mut object, revision),
            Reply::Completion(completion) => completion.write(&mut object),
            Reply::InputRequired(asked) => asked.write(&mut object),
            Reply::TaskCreated(task) => task.write_created(&mut object, revision),
            Reply::Task(task) => task.write_detailed(&mut object, revision),
            Reply::TaskCancelled(_) if modern => {}
            Reply::TaskCancelled(task) => task.write(&mut object, revision),
            Reply::Tasks(page) => page.write(&mut object, revision),
            Reply::TaskResult(finished, task) => finished.write_result(&mut object, task),
            Reply::Empty => {}
        }
        write_meta(&mut object, self.meta(), stamp.server_info.filter(|_| modern), stamp.subscription);
        object.end();
    }

    fn result_type(&self) -> &'static str {
        match self {
            Reply::InputRequired(_) => "input_required",
            Reply::TaskCreated(_) => "task",
            _ => "complete",
        }
    }

    fn meta(&self) -> Option<&RawValue> {
        match self {
            Reply::Tool(result) => result.meta.as_deref(),
            Reply::Resource(result) => result.meta.as_deref(),
            Reply::Prompt(result) => result.meta.as_deref(),
            Reply::Profile(_)
            | Reply::Tools(_)
            | Reply::Resources(_)
            | Reply::Templates(_)
            | Reply::Prompts(_)
            | Reply::Completion(_)
            | Reply::InputRequired(_)
            | Reply::TaskCreated(_)
            | Reply::Task(_)
            | Reply::TaskCancelled(_)
            | Reply::Tasks(_)
            | Reply::TaskResult(..)
            | Reply::Empty => None,
        }
    }
}

/// `_meta` of a result: the server's identity, then what the guest added. A guest cannot speak for the server.
fn write_meta(object: &mut Object<'_>, meta: Option<&RawValue>, server_info: Option<&RawValue>, subscription: Option<&RequestId>) {
    let mut added = meta.and_then(entries).unwrap_or_default();
    added.retain(|(key, _)| key != meta_key::SERVER_INFO);
    if added.is_empty() && server_info.is_none() && subscription.is_none() {
        return;
    }
    let mut inner = Object::new(object.key("_meta"));
    if let Some(server_info) = server_info {
        inner.raw(meta_key::SERVER_INFO, server_info);
    }
    if let Some(subscription) = subscription {
        subscription.write(inner.key(meta_key::SUBSCRIPTION_ID));
    }
    for (key, value) in added {
        raw(inner.dynamic_key(&key), value);
    }
    inner.end();
}
