//! `guesthouse inspect`: what a component exports, imports and offers.
//!
//! Exports, imports and sizes are read from the file. Only the names of tools, prompts and templates need the guest's own
//! list functions; they run in the sandbox, and `--static` leaves them out. What the component declares is shown beside what
//! the configuration beside it grants, as `run` would.

use super::grants::GrantFlags;
use super::print;
use super::run::{configured, single};
use crate::config::GuestConfig;
use crate::config::admin::AdminConfig;
use crate::guest::{Exports, Manifest, read_component};
use crate::host::Host;
use crate::policy::{self, Declaration, Row};
use crate::registry::Loaded;
use anyhow::{Result, anyhow};
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub(super) struct Inspect {
    /// The component.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Run nothing of the guest, not even its list functions.
    #[arg(long = "static")]
    only_static: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Inspect {
    pub(super) async fn run(self) -> Result<ExitCode> {
        let bytes = read_component(&self.file)?;
        let manifest = Manifest::read(&bytes).map_err(|unfit| anyhow!("`{}` {unfit}", self.file.display()))?;
        let mut report = of_manifest(&self.file, &manifest);
        let (_, name, mut settings) = configured(&self.file)?;
        let name = name.unwrap_or_default();
        let by_file = settings.grants.state.is_some();
        GrantFlags::default().apply([(name.as_str(), &mut settings)], true)?;
        let mut rows = policy::table(manifest.wants(), &settings.grants);
        for row in rows.iter_mut().filter(|row| row.kind == "state" && !by_file) {
            row.by = Some("`run`, `up` and `call`, and not by `serve`");
        }
        of_grants(&mut report, &name, &manifest, &settings, &rows);
        if !self.only_static && report.get("refused").is_none() {
            let (mut config, guest) = single(&self.file, GrantFlags::default())?;
            // Looking at a component is no event of the operator's host.
            config.admin = AdminConfig::default();
            let host = Host::start(config, vec![guest]).await?;
            host.each_guest(|guest| of_guest(&mut report, guest));
        }
        if !self.json {
            in_words(&mut report, manifest.declaration.as_ref(), &rows);
        }
        let text = if self.json { serde_json::to_string_pretty(&report)? } else { readable(&report) };
        print(text.trim_end())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What is declared beside what is granted, and why the guest would be refused.
fn of_grants(report: &mut Value, name: &str, manifest: &Manifest, settings: &GuestConfig, rows: &[Row]) {
    let wants = manifest.wants();
    report["declaration"] = json!(manifest.declaration);
    report["grants"] = json!(rows);
    report["instances"] = json!(policy::instance(wants, settings.instance));
    let given = policy::effective(wants, &settings.grants);
    if let Some(lack) = policy::lack(name, &manifest.imports, wants, &given) {
        report["refused"] = format!("it {}; {}", lack.cause, lack.remedy).into();
    }
}

/// The same for people.
fn in_words(report: &mut Value, declaration: Option<&Declaration>, rows: &[Row]) {
    report["declaration"] = declaration.map_or("none".into(), |said| format!("{} {}", said.name, said.version).into());
    report["grants"] = rows.iter().map(ToString::to_string).collect();
}

fn of_manifest(file: &Path, manifest: &Manifest) -> Value {
    json!({
        "file": file.display().to_string(),
        "bytes": manifest.component_bytes,
        "memory bytes at start": manifest.memory_bytes_min,
        "core modules": manifest.core_modules,
        "offers": offers(manifest.offers),
        "exports": manifest.exports,
        "imports": manifest.imports,
    })
}

fn offers(exports: Exports) -> Vec<&'static str> {
    let Exports { tools, resources, subscriptions, prompts, completion, tasks, migration, handoff } = exports;
    [
        (tools, "tools"),
        (resources, "resources"),
        (subscriptions, "subscriptions"),
        (prompts, "prompts"),
        (completion, "completion"),
        (tasks, "tasks"),
        (migration, "migration"),
        (handoff, "handoff"),
    ]
    .into_iter()
    .filter_map(|(offered, name)| offered.then_some(name))
    .collect()
}

fn of_guest(report: &mut Value, guest: &Loaded) {
    let described = |name: &str, description: Option<&String>| match description.and_then(|text| text.lines().next()) {
        Some(line) => format!("{name}: {line}"),
        None => name.to_owned(),
    };
    report["server"] = format!("{} {}", guest.info.name, guest.info.version).into();
    report["size class"] = guest.version.class().as_str().into();
    report["digest"] = guest.version.digest().into();
    report["tools"] = guest.tools.iter().map(|tool| described(&tool.listed.name, tool.listed.description.as_ref())).collect();
    report["prompts"] = guest.prompts.iter().map(|prompt| described(&prompt.name, prompt.description.as_ref())).collect();
    report["templates"] =
        guest.templates.iter().map(|template| described(&template.listed.uri_template, template.listed.description.as_ref())).collect();
}

/// The report as aligned lines; whatever a guest named has its control characters escaped.
fn readable(report: &Value) -> String {
    let mut text = String::new();
    let line = |text: &mut String, key: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key:<22} {}", value.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'"));
    };
    for (key, value) in report.as_object().into_iter().flatten() {
        match value {
            Value::Array(items) if items.is_empty() => line(&mut text, key, "none"),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    line(&mut text, if index == 0 { key } else { "" }, item.as_str().unwrap_or_default());
                }
            }
            Value::String(value) => line(&mut text, key, value),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => line(&mut text, key, &value.to_string()),
        }
    }
    text
}
