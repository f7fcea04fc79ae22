//! Following files while a host runs: sources are built again, components and the configuration loaded again.

use super::tell;
use crate::build::{self, BuildContext, Project};
use crate::config::discover::Source;
use crate::config::{Config, GuestConfig, paths};
use crate::host::{GuestSource, Host};
use crate::swap::{Component, Swapped};
use crate::watch::{Place, Watch};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Changed {
    /// The configuration file.
    Configuration,
    /// What a guest is made of.
    Guest(String),
}

/// What is followed.
pub(super) struct Follow {
    watch: Watch<Changed>,
    sources: BTreeMap<String, Source>,
    config: Config,
    /// Reads the configuration, and puts over it what the command line says. It is given the names of all guests.
    read: Box<Read>,
}

type Read = dyn Fn(&[String]) -> Result<Config> + Send + Sync;

impl Follow {
    /// Follows guests by name, and the configuration file, whether or not there is one yet. `read` is how the command reads it,
    /// given the names of all guests.
    pub(super) fn new(
        sources: BTreeMap<String, Source>,
        config_file: PathBuf,
        config: Config,
        read: impl Fn(&[String]) -> Result<Config> + Send + Sync + 'static,
    ) -> Result<Self> {
        let mut watch = Watch::new(config.swap.debounce.duration())?;
        for (name, source) in &sources {
            let place = match source {
                Source::File(file) => Place::File(file.clone()),
                Source::Project(project) => Place::Folder(project.dir.clone()),
            };
            watch.add(Changed::Guest(name.clone()), place)?;
        }
        watch.add(Changed::Configuration, Place::File(config_file))?;
        Ok(Self { watch, sources, config, read: Box::new(read) })
    }

    /// Follows for as long as it is polled. What goes wrong is told, and changes nothing that is served.
    pub(super) async fn run(mut self, host: Host) {
        loop {
            for changed in self.watch.next().await {
                match changed {
                    Changed::Configuration => self.configuration(&host).await,
                    Changed::Guest(name) => self.guest(&host, &name).await,
                }
            }
        }
    }

    /// Builds a guest again if it is built here, and serves what came of it.
    async fn guest(&self, host: &Host, name: &str) {
        let Some(source) = self.sources.get(name) else { return };
        let (file, build_time) = match source {
            Source::File(file) => (file.clone(), None),
            Source::Project(project) => {
                let began = Instant::now();
                match build_again(project).await {
                    Ok(file) => (file, Some(began.elapsed())),
                    Err(error) => return tell(&format!("not built: guest `{name}`: {error:#}; what was served before is served on")),
                }
            }
        };
        // A guest that could not be built at the start is served from its first good build on.
        if !host.serves(name) {
            let config = self.config.guest.get(name).cloned().unwrap_or_default();
            report(host, name, build_time, host.configure(GuestSource { name: name.to_owned(), file, config }).await);
        } else if host.is_other(name, &file).await {
            report(host, name, build_time, host.swap(name, Component::File(file)).await);
        }
    }

    /// Reads the configuration again, and touches the guests whose table is another one.
    async fn configuration(&mut self, host: &Host) {
        let names: Vec<String> = self.sources.keys().cloned().collect();
        let config = match (self.read)(&names) {
            Ok(config) => config,
            Err(error) => return tell(&format!("the configuration is not taken: {error:#}; the one before stays in force")),
        };
        if config.differs_beside_guests(&self.config) {
            tell("the configuration has changed beside the guests' tables; that takes effect at the next start");
        }
        let mut refused = Vec::new();
        for name in names.iter().chain(config.guest.keys().filter(|name| !names.contains(name))) {
            let after = config.guest.get(name);
            if self.config.guest.get(name) != after && !self.table(host, name, after).await {
                refused.push(name.clone());
            }
        }
        for (name, guest) in &config.guest {
            let is_followed = match (&guest.file, self.sources.get(name)) {
                (None, _) | (_, Some(Source::Project(_))) => true,
                (Some(file), Some(Source::File(followed))) => file == followed,
                (Some(_), None) => false,
            };
            if let (Some(file), false) = (&guest.file, is_followed) {
                let added = self.watch.add(Changed::Guest(name.clone()), Place::File(file.clone()));
                if let Err(error) = added {
                    tell(&format!("{name}: {error:#}"));
                }
                self.sources.insert(name.clone(), Source::File(file.clone()));
            }
        }
        // What was refused is tried again at the next change.
        let mut config = config;
        for name in refused {
            match self.config.guest.get(&name) {
                Some(before) => drop(config.guest.insert(name, before.clone())),
                None => drop(config.guest.shift_remove(&name)),
            }
        }
        self.config = config;
    }

    /// Serves a guest by another table, or one more or one less. Whether the table is taken.
    async fn table(&mut self, host: &Host, name: &str, table: Option<&GuestConfig>) -> bool {
        match (table, self.component(name, table)) {
            (table, Some(file)) => {
                let config = table.cloned().unwrap_or_default();
                let outcome = host.configure(GuestSource { name: name.to_owned(), file, config }).await;
                let is_taken = outcome.is_ok();
                report(host, name, None, outcome);
                return is_taken;
            }
            (None, None) => {
                self.sources.remove(name);
                match host.remove(name).await {
                    Ok(()) => tell(&format!("{name}: is served no more")),
                    Err(error) => tell(&format!("{name}: {error:#}")),
                }
            }
            (Some(_), None) => {
                tell(&format!("{name}: has no `file`, and is not among what was found at the start"));
                return false;
            }
        }
        true
    }

    /// The component of a guest as it is built or configured.
    fn component(&self, name: &str, config: Option<&GuestConfig>) -> Option<PathBuf> {
        match self.sources.get(name) {
            Some(Source::Project(project)) => Some(project.component()),
            // Its table is what made it a guest.
            Some(Source::File(file)) if config.is_some() => {
                Some(config.and_then(|config| config.file.clone()).unwrap_or_else(|| file.clone()))
            }
            Some(Source::File(_)) => None,
            None => config.and_then(|config| config.file.clone()),
        }
    }
}

async fn build_again(project: &Project) -> Result<PathBuf> {
    let project = project.clone();
    let built = tokio::task::spawn_blocking(move || {
        let mut context = BuildContext::new(paths::cache()?, false);
        build::build(&project, &mut context)
    });
    Ok(built.await.context("the build stopped unexpectedly")??.component)
}

/// Tells what came of it, and how long each step took.
fn report(host: &Host, name: &str, build_time: Option<Duration>, swapped: Result<Swapped>) {
    let serves = host.serves(name);
    match swapped {
        Ok(swapped) => {
            let build = build_time.map_or_else(String::new, |time| format!("build {} ms, ", time.as_millis()));
            let gate = format!("{build}gate {} ms", swapped.gate_time.as_millis());
            tell(&format!("{} ({gate})", swapped.sentence()));
            for difference in &swapped.differences {
                tell(&format!("  {difference}"));
            }
        }
        Err(error) if serves => tell(&format!("{name}: the new version is refused, and the old one serves on: {error:#}")),
        Err(error) => tell(&format!("{name}: is not served: {error:#}")),
    }
}
