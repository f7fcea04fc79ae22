//! The table method × revision × capability: which methods exist for whom.

use crate::model::Capabilities;
use crate::revision::Revision;

/// A method that a client may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `initialize`
    Initialize,
    /// `ping`
    Ping,
    /// `logging/setLevel`
    SetLevel,
    /// `server/discover`
    Discover,
    /// `tools/list`
    ListTools,
    /// `tools/call`
    CallTool,
    /// `resources/list`
    ListResources,
    /// `resources/templates/list`
    ListTemplates,
    /// `resources/read`
    ReadResource,
    /// `resources/subscribe`
    Subscribe,
    /// `resources/unsubscribe`
    Unsubscribe,
    /// `subscriptions/listen`
    Listen,
    /// `prompts/list`
    ListPrompts,
    /// `prompts/get`
    GetPrompt,
    /// `completion/complete`
    Complete,
    /// `tasks/get`
    GetTask,
    /// `tasks/update`
    UpdateTask,
    /// `tasks/cancel`
    CancelTask,
    /// `tasks/list`
    ListTasks,
    /// `tasks/result`
    TaskResult,
}

const FIRST: Revision = Revision::V2024_11_05;
const FIRST_TASKS: Revision = Revision::V2025_11_25;
const LAST_HANDSHAKE: Revision = Revision::LATEST_HANDSHAKE;
const MODERN: Revision = Revision::V2026_07_28;

/// Every method, with the first and the last revision that has it.
const TABLE: [(Method, &str, Revision, Revision); 20] = [
    (Method::CallTool, "tools/call", FIRST, MODERN),
    (Method::ListTools, "tools/list", FIRST, MODERN),
    (Method::ReadResource, "resources/read", FIRST, MODERN),
    (Method::ListResources, "resources/list", FIRST, MODERN),
    (Method::ListTemplates, "resources/templates/list", FIRST, MODERN),
    (Method::GetPrompt, "prompts/get", FIRST, MODERN),
    (Method::ListPrompts, "prompts/list", FIRST, MODERN),
    (Method::Complete, "completion/complete", FIRST, MODERN),
    (Method::Discover, "server/discover", MODERN, MODERN),
    (Method::Listen, "subscriptions/listen", MODERN, MODERN),
    (Method::Initialize, "initialize", FIRST, LAST_HANDSHAKE),
    (Method::Ping, "ping", FIRST, LAST_HANDSHAKE),
    (Method::SetLevel, "logging/setLevel", FIRST, LAST_HANDSHAKE),
    (Method::Subscribe, "resources/subscribe", FIRST, LAST_HANDSHAKE),
    (Method::Unsubscribe, "resources/unsubscribe", FIRST, LAST_HANDSHAKE),
    (Method::GetTask, "tasks/get", FIRST_TASKS, MODERN),
    (Method::UpdateTask, "tasks/update", MODERN, MODERN),
    (Method::CancelTask, "tasks/cancel", FIRST_TASKS, MODERN),
    (Method::ListTasks, "tasks/list", FIRST_TASKS, LAST_HANDSHAKE),
    (Method::TaskResult, "tasks/result", FIRST_TASKS, LAST_HANDSHAKE),
];

impl Method {
    /// The method of that name, if the revision has it.
    pub fn find(name: &str, revision: Revision) -> Option<Method> {
        TABLE.iter().find(|(_, known, first, last)| *known == name && (*first..=*last).contains(&revision)).map(|(method, ..)| *method)
    }

    /// The method as it stands on the wire.
    pub fn as_str(self) -> &'static str {
        TABLE.iter().find(|(method, ..)| *method == self).map_or("", |(_, name, ..)| name)
    }

    /// Whether a call may ask the client before it answers. In the modern era these are the only methods that may, and
    /// `tasks/result`, on whose stream the questions of a task go, is not among them.
    pub fn may_ask(self) -> bool {
        matches!(self, Method::CallTool | Method::ReadResource | Method::GetPrompt | Method::TaskResult)
    }

    /// The parameter that the HTTP header `Mcp-Name` repeats, for the methods that have one.
    pub(crate) fn name_param(self) -> Option<&'static str> {
        match self {
            Method::CallTool | Method::GetPrompt => Some("name"),
            Method::ReadResource => Some("uri"),
            Method::GetTask | Method::UpdateTask | Method::CancelTask => Some("taskId"),
            Method::Initialize
            | Method::Ping
            | Method::SetLevel
            | Method::Discover
            | Method::ListTools
            | Method::ListResources
            | Method::ListTemplates
            | Method::Subscribe
            | Method::Unsubscribe
            | Method::Listen
            | Method::ListPrompts
            | Method::Complete
            | Method::ListTasks
            | Method::TaskResult => None,
        }
    }
}

impl Capabilities {
    /// Whether the method is served. The dispatcher asks before it runs a call, since only it knows what the guests
    /// of the endpoint can do at that moment, and answers [`crate::Failure::MethodNotFound`] if not.
    pub fn serves(&self, method: Method) -> bool {
        match method {
            Method::Initialize | Method::Ping | Method::Discover => true,
            // Whatever is asked for, only what can happen is acknowledged.
            Method::Listen => true,
            Method::SetLevel => self.logging,
            Method::ListTools | Method::CallTool => self.tools,
            Method::ListResources | Method::ListTemplates | Method::ReadResource => self.resources,
            Method::Subscribe | Method::Unsubscribe => self.subscribe,
            Method::ListPrompts | Method::GetPrompt => self.prompts,
            Method::Complete => self.completions,
            Method::GetTask | Method::UpdateTask | Method::CancelTask | Method::TaskResult => self.tasks,
            Method::ListTasks => self.tasks && self.task_list,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_one_row_and_its_name_back() {
        for (method, name, first, last) in TABLE {
            assert_eq!(method.as_str(), name);
            for revision in Revision::ALL {
                let expected = (first..=last).contains(&revision).then_some(method);
                assert_eq!(Method::find(name, revision), expected, "{name} in {revision}");
            }
        }
    }

    #[test]
    fn the_modern_era_has_lost_the_session_methods() {
        for name in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
            assert_eq!(Method::find(name, Revision::V2026_07_28), None, "{name}");
            assert!(Method::find(name, Revision::V2024_11_05).is_some(), "{name}");
        }
        assert_eq!(Method::find("server/discover", Revision::V2025_11_25), None);
        assert_eq!(Method::find("TOOLS/LIST", Revision::V2025_11_25), None);
    }

    #[test]
    fn a_method_needs_its_capability() {
        let none = Capabilities::default();
        let tools = Capabilities { tools: true, ..none };
        assert!(tools.serves(Method::CallTool));
        assert!(!none.serves(Method::CallTool));
        assert!(!tools.serves(Method::GetPrompt));
        assert!(!Capabilities { resources: true, ..none }.serves(Method::Subscribe));
        assert!(none.serves(Method::Discover));
    }
}
