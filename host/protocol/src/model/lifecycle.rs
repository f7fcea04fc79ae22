//! `initialize` and `server/discover`: who the server is and what it can do.

use super::common::{CacheHint, Implementation};
use super::tasks::EXTENSION;
use crate::json::{Json, Object, string};
use crate::revision::{Mode, Revision};

/// What a client says when it opens a session.
#[derive(Clone, Debug)]
pub struct InitializeParams {
    /// The version that the client asked for, known or not.
    pub requested_version: String,
    /// The revision that the session will have.
    pub negotiated: Revision,
    /// A `ClientCapabilities` object.
    pub capabilities: Json,
    /// An `Implementation` object.
    pub client_info: Json,
}

/// The extension MCP Apps: a tool names a resource that a client shows instead of the result's text.
const APPS_EXTENSION: &str = "io.modelcontextprotocol/ui";
/// What such a resource is.
const APPS_MIME_TYPE: &str = "text/html;profile=mcp-app";

/// What the served guests can do; filled from what they export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// `tools/*`.
    pub tools: bool,
    /// `resources/*` but for subscriptions.
    pub resources: bool,
    /// `prompts/*`.
    pub prompts: bool,
    /// `completion/complete`.
    pub completions: bool,
    /// Log messages reach the client.
    pub logging: bool,
    /// Clients are told when a list changes.
    pub list_changed: bool,
    /// Clients can watch a resource.
    pub subscribe: bool,
    /// Some tools have views of their own (MCP Apps).
    pub apps: bool,
    /// Some tools run as tasks.
    pub tasks: bool,
    /// `tasks/list`: whoever asks can be told from others.
    pub task_list: bool,
}

/// The answer to `initialize` and `server/discover`; the peer adds the version and the wire form.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Who answers.
    pub server_info: Implementation,
    /// Guidance for the model.
    pub instructions: Option<String>,
    /// What the served guests can do.
    pub capabilities: Capabilities,
    /// How long the answer to `server/discover` stays fresh.
    pub cache: Option<CacheHint>,
}

impl Capabilities {
    fn write(self, out: &mut Vec<u8>, revision: Revision) {
        let mut object = Object::new(out);
        let list = |object: &mut Object<'_>, name: &'static str, subscribe: bool| {
            let mut feature = Object::new(object.key(name));
            if self.list_changed {
                feature.boolean("listChanged", true);
            }
            if subscribe {
                feature.boolean("subscribe", true);
            }
            feature.end();
        };
        if self.tools {
            list(&mut object, "tools", false);
        }
        if self.resources {
            list(&mut object, "resources", self.subscribe);
        }
        if self.prompts {
            list(&mut object, "prompts", false);
        }
        if self.completions && revision.has_completions_capability() {
            Object::new(object.key("completions")).end();
        }
        if self.logging {
            Object::new(object.key("logging")).end();
        }
        if self.tasks && revision.has_task_param() {
            self.write_tasks(object.key("tasks"));
        }
        self.write_extensions(&mut object, revision);
        object.end();
    }
}

impl Capabilities {
    /// Extensions came with the modern era; that of MCP Apps is announced in the revision before it, too, where its clients look
    /// for it in the same place.
    fn write_extensions(self, object: &mut Object<'_>, revision: Revision) {
        let tasks = self.tasks && revision.has_extensions();
        let apps = self.apps && revision >= Revision::V2025_11_25;
        if !tasks && !apps {
            return;
        }
        let mut extensions = Object::new(object.key("extensions"));
        if tasks {
            Object::new(extensions.key(EXTENSION)).end();
        }
        if apps {
            let mut settings = Object::new(extensions.key(APPS_EXTENSION));
            settings.array("mimeTypes", &[APPS_MIME_TYPE], |out, mime| string(out, mime));
            settings.end();
        }
        extensions.end();
    }

    fn write_tasks(self, out: &mut Vec<u8>) {
        let mut tasks = Object::new(out);
        if self.task_list {
            Object::new(tasks.key("list")).end();
        }
        Object::new(tasks.key("cancel")).end();
        let mut requests = Object::new(tasks.key("requests"));
        let mut tools = Object::new(requests.key("tools"));
        Object::new(tools.key("call")).end();
        tools.end();
        requests.end();
        tasks.end();
    }
}

impl Profile {
    /// `InitializeResult`.
    pub(crate) fn write_initialize(&self, object: &mut Object<'_>, revision: Revision) {
        object.text("protocolVersion", revision.as_str());
        self.capabilities.write(object.key("capabilities"), revision);
        self.server_info.write(object.key("serverInfo"), revision);
        object.optional_text("instructions", self.instructions.as_deref());
    }

    /// `DiscoverResult`, but for the server's identity, which is in `_meta` like that of any modern result.
    pub(crate) fn write_discover(&self, object: &mut Object<'_>, mode: Mode, revision: Revision) {
        let versions: Vec<Revision> = mode.revisions().collect();
        object.array("supportedVersions", &versions, |out, version| string(out, version.as_str()));
        self.capabilities.write(object.key("capabilities"), revision);
        object.optional_text("instructions", self.instructions.as_deref());
        CacheHint::write(self.cache, object, revision);
    }
}
