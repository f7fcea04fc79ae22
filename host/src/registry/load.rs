//! From a component to a loaded guest: code, identity, and the lists that are asked once per version.
//!
//! An entry of a list that cannot be served is left out and named in the log; the rest of the guest is served.

use super::schema::Schema;
use super::template::UriTemplate;
use super::{Hints, Loaded, Template, Tool, least_fresh};
use crate::changes::Lists;
use crate::config::{GuestConfig, Limits};
use crate::convert;
use crate::guest::{self, Engines, Failure, Settings, Version, clean};
use crate::policy;
use anyhow::{Context, Result, anyhow, bail};
use guesthouse_protocol::http::ParamHeaders;
use guesthouse_protocol::model;
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Most pages of one list; with the limit on entries, no guest can keep its loader busy for ever.
const PAGES_MAX: usize = 1_000;
/// Said of a loader that is gone, which should never be read.
const STOPPED: &str = "loading stopped unexpectedly";
/// What entries of the lists are called.
const TOOL: &str = "tool";
const PROMPT: &str = "prompt";
const TEMPLATE: &str = "template";
/// Longest name of a tool or a prompt.
const NAME_LEN_MAX: usize = 256;

/// A list: what is served of it, how long it stays fresh, and sentences about what is left out.
type Listed<T> = (Vec<T>, Option<model::CacheHint>, Vec<String>);

/// Loads the component of that file, asks who it is and what it offers.
pub async fn load(engines: &Engines, file: &Path, config: &GuestConfig, settings: Settings, limits: &Limits) -> Result<Loaded> {
    let shown = file.display().to_string();
    let version = {
        let (engines, file) = (engines.clone(), file.to_owned());
        spawn_blocking(move || guest::load_file(&engines, &file, settings)).await.context(STOPPED)??
    };
    ask(version, &shown, config, limits).await
}

/// The same of a component that is in memory; `shown` is what errors call it.
pub async fn load_bytes(
    engines: &Engines,
    shown: &str,
    bytes: Vec<u8>,
    config: &GuestConfig,
    settings: Settings,
    limits: &Limits,
) -> Result<Loaded> {
    let version = {
        let (engines, shown) = (engines.clone(), shown.to_owned());
        spawn_blocking(move || guest::load_bytes(&engines, &shown, &bytes, settings)).await.context(STOPPED)??
    };
    ask(version, shown, config, limits).await
}

/// Asks a version who it is and what it offers. Nothing of that lives on in an instance.
async fn ask(version: Version, shown: &str, config: &GuestConfig, limits: &Limits) -> Result<Loaded> {
    version.set_trial(true);
    let loaded = tried(version, shown, config, limits).await?;
    loaded.version.set_trial(false);
    Ok(loaded)
}

async fn tried(version: Version, shown: &str, config: &GuestConfig, limits: &Limits) -> Result<Loaded> {
    let asked = |what: &str, failure: &Failure| anyhow!("{shown} could not be served: {what} failed: {failure}");
    let described = version.describe().await.map_err(|failure| asked("`describe`", &failure))?;
    let (info, instructions) = convert::server_info(described);
    let exports = version.exports();
    let mut loaded = Loaded {
        name: version.name().into(),
        info,
        instructions,
        config: config.clone(),
        tools: Arc::default(),
        prompts: Arc::default(),
        templates: Arc::default(),
        hints: Hints::default(),
        left_out: Vec::new(),
        resources_digest: [0; 32],
        uris: Arc::default(),
        version: version.clone(),
    };
    renew(&mut loaded, Lists { tools: true, prompts: true, resources: true }, limits).await?;
    warn_of_idle_patterns(config, &loaded);
    if exports.resources {
        loaded.resources_digest = learn_uris(&version, &loaded, limits).await;
    }
    Ok(loaded)
}

/// Asks a guest's lists (again): those that are named, as far as the guest has them.
pub async fn renew(loaded: &mut Loaded, lists: Lists, limits: &Limits) -> Result<()> {
    let (version, exports) = (&loaded.version, loaded.version.exports());
    if lists.tools && exports.tools {
        let (tools, hint, left_out) = tools(version, &loaded.config, limits).await.context("`list-tools` failed")?;
        (loaded.tools, loaded.hints.tools) = (Arc::new(tools), hint);
        loaded.left_out.retain(|(kind, _)| *kind != TOOL);
        loaded.left_out.extend(left_out.into_iter().map(|said| (TOOL, said)));
    }
    if lists.prompts && exports.prompts {
        let (prompts, hint, left_out) = prompts(version, limits).await.context("`list-prompts` failed")?;
        (loaded.prompts, loaded.hints.prompts) = (Arc::new(prompts), hint);
        loaded.left_out.retain(|(kind, _)| *kind != PROMPT);
        loaded.left_out.extend(left_out.into_iter().map(|said| (PROMPT, said)));
    }
    if lists.resources && exports.resources {
        let (templates, hint, left_out) = templates(version, limits).await.context("`list-templates` failed")?;
        (loaded.templates, loaded.hints.templates) = (Arc::new(templates), hint);
        loaded.left_out.retain(|(kind, _)| *kind != TEMPLATE);
        loaded.left_out.extend(left_out.into_iter().map(|said| (TEMPLATE, said)));
    }
    Ok(())
}

/// Lists the resources only to know whose URIs these are; they are listed again for each client. A guest may refuse to list
/// without one, which is no reason not to serve it.
async fn learn_uris(version: &Version, loaded: &Loaded, limits: &Limits) -> [u8; 32] {
    let mut pages = Pages::new(limits);
    let mut hash = Sha256::new();
    while let Ok(page) = version.list_resources(None, pages.cursor.take()).await {
        loaded.remember_uris(page.resources.iter().map(|entry| entry.uri.as_str()));
        page.resources.iter().for_each(|entry| hash.update(format!("{entry:?}\n")));
        if !pages.next(page.resources.len(), page.next).unwrap_or(false) {
            break;
        }
    }
    hash.finalize().into()
}

/// A pattern that lets no tool through is most likely a slip of the pen.
fn warn_of_idle_patterns(config: &GuestConfig, loaded: &Loaded) {
    for pattern in config.tools.iter().flatten() {
        if !loaded.tools.iter().any(|tool| policy::tools::matches(pattern, &tool.listed.name)) {
            tracing::warn!("guest `{}`: no tool matches `{}` in its `tools`", loaded.name, pattern.escape_debug());
        }
    }
}

/// Follows a guest's cursors to the end of a list.
struct Pages {
    cursor: Option<String>,
    count: usize,
    entries: usize,
    entries_max: usize,
    hints: Vec<Option<model::CacheHint>>,
}

impl Pages {
    fn new(limits: &Limits) -> Self {
        Self { cursor: None, count: 0, entries: 0, entries_max: limits.entries, hints: Vec::new() }
    }

    /// Counts a page; whether another follows.
    fn next(&mut self, entries: usize, cursor: Option<String>) -> Result<bool> {
        self.count += 1;
        self.entries += entries;
        if self.entries > self.entries_max {
            bail!("it lists more than {} entries (`limits.entries`)", self.entries_max);
        }
        if self.count >= PAGES_MAX && cursor.is_some() {
            bail!("it lists more than {PAGES_MAX} pages");
        }
        self.cursor = cursor;
        Ok(self.cursor.is_some())
    }
}

async fn tools(version: &Version, config: &GuestConfig, limits: &Limits) -> Result<Listed<Tool>> {
    let (mut kept, mut left_out): (Vec<Tool>, _) = (Vec::new(), Vec::new());
    let mut names = HashSet::new();
    let mut pages = Pages::new(limits);
    loop {
        let page = version.list_tools(None, pages.cursor.take()).await?;
        pages.hints.push(convert::cache_hint(page.cache));
        let more = pages.next(page.tools.len(), page.next)?;
        for tool in page.tools {
            let name = tool.name.clone();
            if !policy::tools::is_served(config.tools.as_deref(), &name) {
                continue;
            }
            let checked = check_name(&name, &mut names).and_then(|()| check_tool(tool, limits));
            left_out.extend(keep(version, TOOL, &name, checked, &mut kept));
        }
        if !more {
            return Ok((kept, least_fresh(pages.hints), left_out));
        }
    }
}

fn check_tool(tool: crate::guest::bindings::tools::Tool, limits: &Limits) -> Result<Tool, String> {
    let listed = convert::tool(tool).map_err(|bad| bad.to_string())?;
    let bytes_max = usize::try_from(limits.schema.0).unwrap_or(usize::MAX);
    let input = Schema::of_arguments(&listed.input_schema, bytes_max).map_err(|problem| format!("its input schema {problem}"))?;
    let output = listed
        .output_schema
        .as_deref()
        .map(|schema| Schema::of_output(schema, bytes_max).map_err(|problem| format!("its output schema {problem}")))
        .transpose()?;
    let headers = ParamHeaders::of_schema(&listed.input_schema).map_err(|problem| format!("its `x-mcp-header` annotations: {problem}"))?;
    Ok(Tool { listed: Arc::new(listed), input, output, headers })
}

async fn prompts(version: &Version, limits: &Limits) -> Result<Listed<Arc<model::Prompt>>> {
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    let mut names = HashSet::new();
    let mut pages = Pages::new(limits);
    loop {
        let page = version.list_prompts(None, pages.cursor.take()).await?;
        pages.hints.push(convert::cache_hint(page.cache));
        let more = pages.next(page.prompts.len(), page.next)?;
        for prompt in page.prompts {
            let name = prompt.name.clone();
            let checked = check_name(&name, &mut names).and_then(|()| convert::prompt(prompt).map(Arc::new).map_err(|bad| bad.to_string()));
            left_out.extend(keep(version, PROMPT, &name, checked, &mut kept));
        }
        if !more {
            return Ok((kept, least_fresh(pages.hints), left_out));
        }
    }
}

async fn templates(version: &Version, limits: &Limits) -> Result<Listed<Template>> {
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    let mut pages = Pages::new(limits);
    loop {
        let page = version.list_templates(None, pages.cursor.take()).await?;
        pages.hints.push(convert::cache_hint(page.cache));
        let more = pages.next(page.templates.len(), page.next)?;
        for template in page.templates {
            let uri_template = template.uri_template.clone();
            let checked = UriTemplate::parse(&uri_template).map_err(|error| error.to_string()).and_then(|matcher| {
                convert::template(template).map(|listed| Template { listed: Arc::new(listed), matcher }).map_err(|bad| bad.to_string())
            });
            left_out.extend(keep(version, TEMPLATE, &uri_template, checked, &mut kept));
        }
        if !more {
            return Ok((kept, least_fresh(pages.hints), left_out));
        }
    }
}

fn check_name(name: &str, seen: &mut HashSet<String>) -> Result<(), String> {
    if name.is_empty() || name.len() > NAME_LEN_MAX || name.chars().any(char::is_control) {
        return Err(format!("its name must have 1 to {NAME_LEN_MAX} bytes and no control characters"));
    }
    if !seen.insert(name.to_owned()) {
        return Err("another of that name was listed before it".into());
    }
    Ok(())
}

/// Takes an entry in, or says why it is left out.
fn keep<T>(version: &Version, kind: &str, name: &str, checked: Result<T, String>, kept: &mut Vec<T>) -> Option<String> {
    match checked {
        Ok(entry) => {
            kept.push(entry);
            None
        }
        Err(problem) => {
            let said = format!("the {kind} `{}` is left out: {problem}", clean(name, NAME_LEN_MAX));
            version.report(&said);
            Some(said)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_end_is_given_up() {
        let mut pages = Pages::new(&Limits { entries: 10, ..Limits::default() });
        assert!(pages.next(10, Some("c".into())).unwrap());
        assert!(pages.next(1, Some("c".into())).unwrap_err().to_string().contains("10 entries"));
        let mut pages = Pages::new(&Limits::default());
        let end = (0..).find(|_| pages.next(0, Some("c".into())).is_err());
        assert_eq!(end, Some(PAGES_MAX - 1));
    }
}
