//! `guesthouse up`: builds what a folder holds and serves it over HTTP.

use super::follow::Follow;
use super::grants::GrantFlags;
use super::{ServerFlags, serve, tell};
use crate::build::{self, BuildContext, MissingTool};
use crate::config::discover::{Found, Source, discover};
use crate::config::{Config, FILE_NAME, Prefix, paths};
use crate::host::{GuestSource, Host};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `up`.
#[derive(Debug, Args)]
pub(super) struct Up {
    /// A guest's project, a component, or a folder of them.
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Serve on standard input and output instead of HTTP.
    #[arg(long)]
    stdio: bool,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    grants: GrantFlags,
}

impl Up {
    pub(super) async fn run(self) -> Result<ExitCode> {
        let folder = if self.dir.is_file() { self.dir.parent().unwrap_or(Path::new(".")) } else { &self.dir };
        let mut config = Config::read_in(folder)?;
        self.server.clone().apply(&mut config);
        let Found { guests, skipped } = discover(&self.dir)?;
        for reason in &skipped {
            tell(&format!("skipped: {reason}"));
        }
        let found = named(guests, &config, !skipped.is_empty())?;
        let complete = skipped.is_empty();
        self.grants.apply_to_all(&mut config, &found.keys().cloned().collect::<Vec<_>>(), complete)?;
        // A port that is taken is said before minutes are spent on building.
        let listener = if self.stdio { None } else { Some(serve::bind(config.server.listen)?) };
        let total = found.len() + skipped.len();
        // Whether names are prefixed follows from what is there, not from which toolchains are installed today.
        if config.server.prefix == Prefix::Auto && total > 1 {
            config.server.prefix = Prefix::Always;
        }
        let follow = self.follow(folder, &found, &config, complete)?;
        let guests = tokio::task::spawn_blocking({
            let config = config.clone();
            move || build_all(found, &config)
        })
        .await
        .context("the build stopped unexpectedly")??;
        if guests.is_empty() {
            bail!("none of the {total} guests in `{}` could be built; the messages above say why", self.dir.display());
        }
        let host = Host::start(config, guests).await?;
        serve::announce(&host, listener.as_ref());
        serve::until_stopped(host, listener, Some(follow)).await
    }

    /// Follows what was found, and the configuration as this command adjusts it.
    fn follow(&self, folder: &Path, found: &BTreeMap<String, Source>, config: &Config, complete: bool) -> Result<Follow> {
        let (server, grants, prefix) = (self.server.clone(), self.grants.clone(), config.server.prefix);
        let read_in = folder.to_owned();
        Follow::new(found.clone(), folder.join(FILE_NAME), config.clone(), move |names| {
            let mut config = Config::read_in(&read_in)?;
            server.clone().apply(&mut config);
            if config.server.prefix == Prefix::Auto {
                config.server.prefix = prefix;
            }
            grants.apply_to_all(&mut config, names, complete)?;
            Ok(config)
        })
    }
}

/// Gives guests that the configuration names by their file the configured name. One that is configured and not there may be
/// among those that were skipped.
fn named(found: BTreeMap<String, Source>, config: &Config, skipped: bool) -> Result<BTreeMap<String, Source>> {
    let mut guests = BTreeMap::new();
    let configured: Vec<(String, PathBuf)> =
        config.guest.iter().filter_map(|(name, guest)| Some((name.clone(), guest.file.as_ref()?.canonicalize().ok()?))).collect();
    for (name, source) in found {
        let key = configured.iter().find(|(_, file)| file == source.path()).map_or(name, |(key, _)| key.clone());
        if guests.contains_key(&key) {
            bail!("two guests would be called `{key}`; give one of them another key in guesthouse.toml");
        }
        guests.insert(key, source);
    }
    for (name, guest) in &config.guest {
        match &guest.file {
            Some(file) if !guests.contains_key(name) => {
                let file = file.canonicalize().with_context(|| format!("cannot open `{}` of guest `{name}`", file.display()))?;
                guests.insert(name.clone(), Source::File(file));
            }
            None if !guests.contains_key(name) && skipped => tell(&format!("not served: guest `{name}` of guesthouse.toml was not found")),
            None if !guests.contains_key(name) => {
                bail!("guesthouse.toml configures the guest `{name}`, but there is none of that name here and it has no `file`");
            }
            _ => {}
        }
    }
    Ok(guests)
}

/// Builds every project. A guest that cannot be built is skipped visibly: the others are served without it.
fn build_all(found: BTreeMap<String, Source>, config: &Config) -> Result<Vec<GuestSource>> {
    let mut context = BuildContext::new(paths::cache()?, false);
    let mut guests = Vec::new();
    for (name, source) in found {
        let settings = config.guest.get(&name).cloned().unwrap_or_default();
        let file = match source {
            Source::File(file) => file,
            Source::Project(project) => match build::build(&project, &mut context) {
                Ok(built) => built.component,
                Err(error) => {
                    let reason = if error.downcast_ref::<MissingTool>().is_some() { "skipped" } else { "not built" };
                    tell(&format!("{reason}: guest `{name}` ({}): {error:#}", project.dir.display()));
                    continue;
                }
            },
        };
        guests.push(GuestSource { name, file, config: settings });
    }
    Ok(guests)
}
