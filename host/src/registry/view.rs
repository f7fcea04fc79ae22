//! What one endpoint serves: names, and which guest's tool, prompt or resource each of them stands for.

use super::{Hints, Loaded, Template, Tool, least_fresh};
use crate::config::{Config, Mode};
use crate::guest::clean;
use anyhow::{Result, bail};
use guesthouse_protocol::{ParseLimits, PeerConfig, PeerLimits, TransportKind, model};
use std::collections::HashMap;
use std::sync::Arc;

/// Who the merged endpoint says it is.
const DEFAULT_NAME: &str = "guesthouse";
/// Longest tool or prompt name that every known client accepts.
const SAFE_NAME_LEN_MAX: usize = 64;
/// Longest name or template that is shown in messages.
const SHOWN_BYTES_MAX: usize = 256;

/// What one endpoint serves.
pub struct View {
    guests: Vec<Arc<Loaded>>,
    /// The answer to `initialize` and `server/discover`.
    pub profile: model::Profile,
    /// How long the lists below stay fresh.
    pub hints: Hints,
    /// In the order of listing: guests by name, within a guest its own order.
    pub tools: Vec<ViewTool>,
    /// Likewise.
    pub prompts: Vec<ViewPrompt>,
    /// Likewise.
    pub templates: Vec<Arc<model::ResourceTemplate>>,
    tool_at: HashMap<String, usize>,
    prompt_at: HashMap<String, usize>,
    peers: [Arc<PeerConfig>; 3],
}

/// A tool under the name that clients of the endpoint use.
pub struct ViewTool {
    /// As it is listed here.
    pub listed: Arc<model::Tool>,
    /// Whose it is.
    pub guest: Arc<Loaded>,
    index: usize,
}

/// A prompt under the name that clients of the endpoint use.
pub struct ViewPrompt {
    /// As it is listed here.
    pub listed: Arc<model::Prompt>,
    /// Whose it is.
    pub guest: Arc<Loaded>,
    /// Its name there.
    pub own_name: String,
}

impl ViewTool {
    /// The guest's own tool; `None` cannot happen, since a view is made of what its guests have.
    pub fn tool(&self) -> Option<&Tool> {
        self.guest.tools.get(self.index)
    }
}

impl View {
    /// One guest under its own names.
    pub(super) fn of_guest(config: &Config, guest: Arc<Loaded>) -> Result<Self> {
        let profile = model::Profile {
            server_info: guest.info.clone(),
            instructions: guest.instructions.clone(),
            capabilities: capabilities(std::slice::from_ref(&guest)),
            cache: None,
        };
        Self::new(config, profile, vec![guest], false)
    }

    /// All guests.
    pub(super) fn merged(config: &Config, guests: Vec<Arc<Loaded>>, prefixed: bool) -> Result<Self> {
        let server = &config.server;
        let capabilities = capabilities(&guests);
        // With one guest its own identity is the server's, except for what the operator says.
        let own = match guests.as_slice() {
            [guest] => guest.info.clone(),
            _ => model::Implementation {
                name: DEFAULT_NAME.into(),
                version: env!("CARGO_PKG_VERSION").into(),
                ..model::Implementation::default()
            },
        };
        let server_info = model::Implementation {
            name: server.name.clone().unwrap_or(own.name),
            version: server.version.clone().unwrap_or(own.version),
            title: server.title.clone().or(own.title),
            ..own
        };
        let instructions = match (guests.as_slice(), &server.instructions) {
            ([guest], None) => guest.instructions.clone(),
            (_, own) => instructions(own.as_deref(), &guests),
        };
        let profile = model::Profile { server_info, instructions, capabilities, cache: None };
        Self::new(config, profile, guests, prefixed)
    }

    fn new(config: &Config, profile: model::Profile, guests: Vec<Arc<Loaded>>, prefixed: bool) -> Result<Self> {
        let peer = |transport| Arc::new(peer_config(config, &profile.server_info, transport));
        let mut view = Self {
            peers: [peer(TransportKind::Stdio), peer(TransportKind::Http), peer(TransportKind::Memory)],
            profile,
            hints: Hints {
                tools: least_fresh(guests.iter().filter(|guest| guest.version.exports().tools).map(|guest| guest.hints.tools)),
                prompts: least_fresh(guests.iter().filter(|guest| guest.version.exports().prompts).map(|guest| guest.hints.prompts)),
                templates: least_fresh(guests.iter().filter(|guest| guest.version.exports().resources).map(|guest| guest.hints.templates)),
            },
            tools: Vec::new(),
            prompts: Vec::new(),
            templates: Vec::new(),
            tool_at: HashMap::new(),
            prompt_at: HashMap::new(),
            guests,
        };
        for guest in view.guests.clone() {
            for index in 0..guest.tools.len() {
                view.add_tool(&guest, index, prefixed)?;
            }
            for prompt in guest.prompts.iter() {
                view.add_prompt(&guest, prompt, prefixed)?;
            }
            view.templates.extend(guest.templates.iter().map(|template| template.listed.clone()));
        }
        view.report_overlaps();
        Ok(view)
    }

    fn add_tool(&mut self, guest: &Arc<Loaded>, index: usize, prefixed: bool) -> Result<()> {
        let Some(tool) = guest.tools.get(index) else { return Ok(()) };
        let listed = if prefixed {
            Arc::new(model::Tool { name: prefix(guest, &tool.listed.name), ..model::Tool::clone(&tool.listed) })
        } else {
            tool.listed.clone()
        };
        if let Some(other) = self.tool_at.get(&listed.name).and_then(|at| self.tools.get(*at)) {
            bail!("{}", collision("tool", &listed.name, &other.guest, guest));
        }
        warn_of_strict_clients("tool", &listed.name, guest);
        self.tool_at.insert(listed.name.clone(), self.tools.len());
        self.tools.push(ViewTool { listed, guest: guest.clone(), index });
        Ok(())
    }

    fn add_prompt(&mut self, guest: &Arc<Loaded>, prompt: &Arc<model::Prompt>, prefixed: bool) -> Result<()> {
        let listed = if prefixed {
            Arc::new(model::Prompt { name: prefix(guest, &prompt.name), ..model::Prompt::clone(prompt) })
        } else {
            prompt.clone()
        };
        if let Some(other) = self.prompt_at.get(&listed.name).and_then(|at| self.prompts.get(*at)) {
            bail!("{}", collision("prompt", &listed.name, &other.guest, guest));
        }
        warn_of_strict_clients("prompt", &listed.name, guest);
        self.prompt_at.insert(listed.name.clone(), self.prompts.len());
        self.prompts.push(ViewPrompt { listed, guest: guest.clone(), own_name: prompt.name.clone() });
        Ok(())
    }

    /// Two guests with one template are legal, and worth a line in the log: only one of them is asked.
    fn report_overlaps(&self) {
        let mut owner: HashMap<&str, &str> = HashMap::new();
        for guest in &self.guests {
            for template in guest.templates.iter() {
                if let Some(first) = owner.insert(&template.listed.uri_template, &guest.name)
                    && first != &*guest.name
                {
                    let template = clean(&template.listed.uri_template, SHOWN_BYTES_MAX);
                    tracing::warn!("the guests `{first}` and `{}` both have the template `{template}`", guest.name);
                }
            }
        }
    }

    /// What the protocol needs to know about this endpoint's connections of that kind.
    pub fn peer_config(&self, transport: TransportKind) -> &Arc<PeerConfig> {
        let [stdio, http, memory] = &self.peers;
        match transport {
            TransportKind::Stdio => stdio,
            TransportKind::Http => http,
            TransportKind::Memory => memory,
        }
    }

    /// The guests of this endpoint, by name.
    pub fn guests(&self) -> &[Arc<Loaded>] {
        &self.guests
    }

    /// The guests that have resources, by name.
    pub fn resource_guests(&self) -> impl Iterator<Item = &Arc<Loaded>> {
        self.guests.iter().filter(|guest| guest.version.exports().resources)
    }

    /// The tool of that name.
    pub fn tool(&self, name: &str) -> Option<&ViewTool> {
        self.tools.get(*self.tool_at.get(name)?)
    }

    /// The prompt of that name.
    pub fn prompt(&self, name: &str) -> Option<&ViewPrompt> {
        self.prompts.get(*self.prompt_at.get(name)?)
    }

    /// The guest with that template.
    pub fn template_owner(&self, uri_template: &str) -> Option<&Arc<Loaded>> {
        self.guests.iter().find(|guest| guest.templates.iter().any(|template| template.listed.uri_template == uri_template))
    }

    /// Whose resource this is: the only guest that has any; else the one that listed it; else the one whose template fits
    /// most literally, ties by name. Nobody is asked.
    pub fn resource_owner(&self, uri: &str) -> Option<&Arc<Loaded>> {
        let mut candidates = self.resource_guests();
        let first = candidates.next()?;
        if candidates.next().is_none() {
            return Some(first);
        }
        if let Some(guest) = self.resource_guests().find(|guest| guest.listed_uri(uri)) {
            return Some(guest);
        }
        let fits = |template: &&Template| template.matcher.matches(uri);
        let literal = |guest: &Arc<Loaded>| guest.templates.iter().filter(fits).map(|template| template.matcher.literal_len()).max();
        let mut best: Option<(usize, &Arc<Loaded>)> = None;
        for guest in self.resource_guests() {
            if let Some(len) = literal(guest)
                && best.is_none_or(|(longest, _)| len > longest)
            {
                best = Some((len, guest));
            }
        }
        best.map(|(_, guest)| guest)
    }
}

/// `rust-textkit_slugify`: no guest's name has an underscore, so two guests never make the same name.
fn prefix(guest: &Loaded, name: &str) -> String {
    format!("{}_{name}", guest.name)
}

fn collision(kind: &str, name: &str, first: &Loaded, second: &Loaded) -> String {
    let name = clean(name, SHOWN_BYTES_MAX);
    if first.name == second.name {
        return format!("the guest `{}` lists two {kind}s called `{name}`", first.name);
    }
    format!(
        "the guests `{}` and `{}` both have a {kind} called `{name}`; serve them with prefix = \"always\", or leave one of the {kind}s out",
        first.name, second.name
    )
}

fn warn_of_strict_clients(kind: &str, name: &str, guest: &Loaded) {
    let safe = (1..=SAFE_NAME_LEN_MAX).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !safe {
        tracing::warn!(
            "some clients reject the {kind} name `{}` (guest `{}`): use at most 64 of A-Z a-z 0-9 _ -",
            clean(name, SHOWN_BYTES_MAX),
            guest.name
        );
    }
}

fn peer_config(config: &Config, server_info: &model::Implementation, transport: TransportKind) -> PeerConfig {
    let (limits, streams) = (&config.limits, &config.streams);
    let mode = match config.server.mode {
        Mode::Modern => guesthouse_protocol::Mode::Modern,
        Mode::Handshake => guesthouse_protocol::Mode::Handshake,
        Mode::Both => guesthouse_protocol::Mode::Both,
    };
    let mut peer = PeerConfig::new(mode, transport, config.server.server_info.then_some(server_info));
    peer.limits = PeerLimits {
        parse: ParseLimits {
            message_bytes_max: usize::try_from(limits.message.0).unwrap_or(usize::MAX),
            depth_max: limits.depth,
            batch_len_max: limits.batch,
            ..ParseLimits::default()
        },
        request_ids_max: limits.request_ids,
        in_flight_max: limits.requests_per_peer,
        subscriptions_max: streams.listeners_per_peer,
        subscription_uris_max: streams.uris,
        subscription_uri_bytes_max: usize::try_from(streams.uri_bytes.0).unwrap_or(usize::MAX),
        waiting_max: limits.questions_per_peer,
        question_time_ms: limits.question_time.0,
        ..PeerLimits::default()
    };
    peer
}

/// The union of what the guests export.
fn capabilities(guests: &[Arc<Loaded>]) -> model::Capabilities {
    let any = |has: fn(&Loaded) -> bool| guests.iter().any(|guest| has(guest));
    model::Capabilities {
        tools: any(|guest| guest.version.exports().tools),
        resources: any(|guest| guest.version.exports().resources),
        prompts: any(|guest| guest.version.exports().prompts),
        completions: any(|guest| guest.version.exports().completion),
        logging: true,
        list_changed: true,
        subscribe: any(|guest| guest.version.exports().resources),
        apps: any(|guest| guest.tools.iter().any(|tool| has_view(&tool.listed))),
        tasks: any(|guest| guest.tools.iter().any(|tool| tool.listed.task_support != model::TaskSupport::Forbidden)),
        task_list: false,
    }
}

/// Whether a tool names a view (MCP Apps): `_meta.ui.resourceUri`, or the older flat key.
fn has_view(tool: &model::Tool) -> bool {
    let meta = tool.meta.as_ref().and_then(|meta| serde_json::from_str::<serde_json::Value>(meta.get()).ok());
    meta.is_some_and(|meta| meta.pointer("/ui/resourceUri").is_some() || meta.get("ui/resourceUri").is_some())
}

/// The server's own instructions, then those of each guest under its name.
fn instructions(own: Option<&str>, guests: &[Arc<Loaded>]) -> Option<String> {
    let of_guests = guests.iter().filter_map(|guest| Some(format!("## {}\n\n{}", guest.name, guest.instructions.as_ref()?)));
    let parts: Vec<String> = own.map(str::to_owned).into_iter().chain(of_guests).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}
