//! Validates what a peer sends against the specification's own schemas, made strict: a member that the revision does
//! not know is a mistake, too.

use std::collections::HashMap;

use guesthouse_protocol::Revision;
use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// The schemas, and what is known of the requests that wait for an answer.
pub(crate) struct Schemas {
    documents: HashMap<Revision, Value>,
    validators: HashMap<(Revision, String), Validator>,
    /// Request id (as JSON text) → method and revision.
    waiting: HashMap<String, (String, Revision)>,
    last: Revision,
    /// The server ignores the modern metadata.
    pub(crate) handshake_only: bool,
}

impl Schemas {
    pub(crate) fn new() -> Schemas {
        Schemas {
            documents: HashMap::new(),
            validators: HashMap::new(),
            waiting: HashMap::new(),
            last: Revision::LATEST_MODERN,
            handshake_only: false,
        }
    }

    /// Notes what went in, to know what the answer must look like.
    pub(crate) fn sent(&mut self, text: &str, session: Option<Revision>) {
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        self.last = session.unwrap_or(Revision::LATEST_MODERN);
        let messages = message.as_array().cloned().unwrap_or_else(|| vec![message]);
        for message in messages {
            let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
            let method = message["method"].as_str().unwrap_or_default().to_owned();
            let own = version.as_str().filter(|_| !self.handshake_only).and_then(|version| version.parse().ok());
            let asked = message["params"]["protocolVersion"].as_str().and_then(|version| version.parse().ok());
            let asked = asked.filter(|_| method == "initialize");
            let revision = own.or(asked).or(session).unwrap_or(Revision::LATEST_HANDSHAKE);
            self.waiting.insert(message["id"].to_string(), (method, revision));
        }
    }

    /// What is wrong with a response, or with an array of them.
    pub(crate) fn answer_problem(&mut self, message: &Value) -> Option<String> {
        if let Some(messages) = message.as_array() {
            return messages.iter().find_map(|message| self.answer_problem(message));
        }
        let waiting = message.get("id").and_then(|id| self.waiting.get(&id.to_string()));
        let (method, revision) = waiting.cloned().unwrap_or((String::new(), self.last));
        if message.get("error").is_some() {
            return self.error_problem(message, revision);
        }
        if revision == Revision::V2026_07_28
            && let Some(definition) = task_definition(&method, &message["result"])
        {
            return self.task_problem(definition, &message["result"]);
        }
        let definition = match method.as_str() {
            "initialize" => "InitializeResult",
            "server/discover" => "DiscoverResult",
            "tools/list" => "ListToolsResult",
            _ if message["result"]["resultType"] == "input_required" => "InputRequiredResult",
            "tools/call" if message["result"].get("task").is_some() => "CreateTaskResult",
            "tools/call" => "CallToolResult",
            "resources/list" => "ListResourcesResult",
            "resources/templates/list" => "ListResourceTemplatesResult",
            "resources/read" => "ReadResourceResult",
            "prompts/list" => "ListPromptsResult",
            "prompts/get" => "GetPromptResult",
            "completion/complete" => "CompleteResult",
            "tasks/get" => "GetTaskResult",
            "tasks/cancel" => "CancelTaskResult",
            "tasks/list" => "ListTasksResult",
            "tasks/result" => "CallToolResult",
            "subscriptions/listen" => "SubscriptionsListenResult",
            _ => "EmptyResult",
        };
        let revision = match message["result"]["protocolVersion"].as_str() {
            Some(version) => version.parse().expect("a known revision"),
            None => revision,
        };
        let problem = self.problem(revision, definition, &message["result"]);
        let envelope = if revision >= Revision::V2025_11_25 { "JSONRPCResultResponse" } else { "JSONRPCResponse" };
        problem.or_else(|| self.problem(revision, envelope, message))
    }

    /// What is wrong with a result of the extension for tasks. Its schemas are open, so that names are looked at apart.
    fn task_problem(&mut self, definition: &str, result: &Value) -> Option<String> {
        let mut schema = parsed(include_str!("../../../../tests/schema/ext-tasks.json"));
        schema["$ref"] = json!(format!("#/$defs/{definition}"));
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        if let Some(error) = validator.iter_errors(result).next() {
            return Some(format!("{definition}: {error} in {result}"));
        }
        if definition == "TaskStatusNotification" {
            // The schema of the result knows the same members as that of the notification.
            let mut task = result["params"].clone();
            task["resultType"] = json!("complete");
            return self.task_problem("GetTaskResult", &task);
        }
        let empty = matches!(definition, "UpdateTaskResult" | "CancelTaskResult");
        let known = |name: &str| matches!(name, "resultType" | "_meta") || (!empty && TASK_MEMBERS.contains(&name));
        if let Some(unknown) = result.as_object().expect("an object").keys().find(|name| !known(name)) {
            return Some(format!("{definition} has no {unknown}: {result}"));
        }
        result.get("result").and_then(|inlined| self.problem(Revision::V2026_07_28, "CallToolResult", inlined))
    }

    /// What is wrong with a request of the server's, or with the notification that takes it back.
    pub(crate) fn asked_problem(&mut self, message: &Value) -> Option<String> {
        let definition = match message["method"].as_str() {
            Some("elicitation/create") => "ElicitRequest",
            Some("sampling/createMessage") => "CreateMessageRequest",
            Some("roots/list") => "ListRootsRequest",
            Some("notifications/cancelled") => "CancelledNotification",
            method => return Some(format!("an unknown request: {method:?}")),
        };
        let mut message = message.clone();
        if self.last < Revision::V2025_11_25 {
            // These schemas have the envelope apart.
            let members = message.as_object_mut().expect("an object");
            members.remove("jsonrpc");
            members.remove("id");
        }
        self.problem(self.last, definition, &message)
    }

    /// What is wrong with a notification.
    pub(crate) fn notification_problem(&mut self, message: &Value, revision: Revision) -> Option<String> {
        let definition = match message["method"].as_str() {
            Some("notifications/progress") => "ProgressNotification",
            Some("notifications/message") => "LoggingMessageNotification",
            Some("notifications/subscriptions/acknowledged") => "SubscriptionsAcknowledgedNotification",
            Some("notifications/tools/list_changed") => "ToolListChangedNotification",
            Some("notifications/prompts/list_changed") => "PromptListChangedNotification",
            Some("notifications/resources/list_changed") => "ResourceListChangedNotification",
            Some("notifications/resources/updated") => "ResourceUpdatedNotification",
            Some("notifications/cancelled") => "CancelledNotification",
            Some("notifications/tasks/status") => return self.problem(revision, "Task", &message["params"]),
            Some("notifications/tasks") => return self.task_problem("TaskStatusNotification", message),
            method => return Some(format!("an unknown notification: {method:?}")),
        };
        let mut message = message.clone();
        if let Some(members) = message.pointer_mut("/params/notifications").and_then(Value::as_object_mut) {
            // The extension's; the core does not know it.
            assert!(members.remove("taskIds").is_none_or(|ids| ids.is_array()));
        }
        if revision < Revision::V2025_11_25 {
            // These schemas have the envelope apart.
            message.as_object_mut().expect("an object").remove("jsonrpc");
        }
        self.problem(revision, definition, &message)
    }

    fn error_problem(&mut self, message: &Value, revision: Revision) -> Option<String> {
        let definition = match (message["error"]["code"].as_i64(), revision) {
            (Some(-32020), Revision::V2026_07_28) => "HeaderMismatchError",
            (Some(-32021), Revision::V2026_07_28) => "MissingRequiredClientCapabilityError",
            (Some(-32022), _) => {
                return self.problem(Revision::V2026_07_28, "UnsupportedProtocolVersionError", message);
            }
            (_, Revision::V2026_07_28 | Revision::V2025_11_25) => "JSONRPCErrorResponse",
            _ => "JSONRPCError",
        };
        let mut message = message.clone();
        if message["id"].is_null() && revision < Revision::V2025_11_25 {
            // JSON-RPC has `null` there, which these schemas forgot.
            message["id"] = json!(0);
        }
        self.problem(revision, definition, &message)
    }

    /// What is wrong with a value that should be of that definition.
    pub(crate) fn problem(&mut self, revision: Revision, definition: &str, value: &Value) -> Option<String> {
        let key = (revision, definition.to_owned());
        if !self.validators.contains_key(&key) {
            let document = self.documents.entry(revision).or_insert_with(|| strict(document(revision)));
            let mut schema = document.clone();
            schema["$ref"] = json!(format!("#/{}/{definition}", definitions_key(document)));
            assert!(definitions(document).contains_key(definition), "{revision} has no {definition}");
            self.validators.insert(key.clone(), jsonschema::validator_for(&schema).expect("a schema"));
        }
        let error = self.validators[&key].iter_errors(value).next()?;
        Some(format!("{revision} {definition}: {error} at {} in {value}", error.instance_path()))
    }
}

/// What a task may have in the extension.
const TASK_MEMBERS: [&str; 10] =
    ["taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs", "inputRequests", "result", "error"];

fn task_definition(method: &str, result: &Value) -> Option<&'static str> {
    match method {
        "tools/call" if result["resultType"] == "task" => Some("CreateTaskResult"),
        "tasks/get" => Some("GetTaskResult"),
        "tasks/update" => Some("UpdateTaskResult"),
        "tasks/cancel" => Some("CancelTaskResult"),
        _ => None,
    }
}

/// The schema document of a revision.
pub(crate) fn document(revision: Revision) -> Value {
    let text = match revision {
        Revision::V2024_11_05 => include_str!("../../../../tests/schema/2024-11-05.json"),
        Revision::V2025_03_26 => include_str!("../../../../tests/schema/2025-03-26.json"),
        Revision::V2025_06_18 => include_str!("../../../../tests/schema/2025-06-18.json"),
        Revision::V2025_11_25 => include_str!("../../../../tests/schema/2025-11-25.json"),
        Revision::V2026_07_28 => include_str!("../../../../tests/schema/2026-07-28.json"),
    };
    parsed(text)
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// The definitions of a schema document, by name.
pub(crate) fn definitions(document: &Value) -> &Map<String, Value> {
    document[definitions_key(document)].as_object().expect("definitions")
}

fn definitions_key(document: &Value) -> &'static str {
    if document.get("$defs").is_some() { "$defs" } else { "definitions" }
}

/// Closes every definition that lists its members, but for `_meta` and for what another definition extends.
fn strict(mut document: Value) -> Value {
    let key = definitions_key(&document);
    let open = ["Result", "Error", "PaginatedResult", "CacheableResult"];
    for (name, definition) in document[key].as_object_mut().expect("definitions") {
        let closed = definition.get("properties").is_some() && definition.get("additionalProperties").is_none();
        if closed && !name.contains("Meta") && !open.contains(&name.as_str()) {
            definition["additionalProperties"] = json!(false);
        }
    }
    document
}
