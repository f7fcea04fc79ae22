//! A version that has a share of the calls before it has all of them.

use super::gate::{self, Passed};
use super::{AbortOnDrop, Component, Same, Slot, Stored, Swapped, lock, migrate, probation};
use crate::audit::What;
use crate::config::grants::InstancePolicy;
use crate::host::{GuestSource, Shared};
use crate::registry::Loaded;
use anyhow::{Result, anyhow, bail};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A version that has passed the gate, and waits to be put in force.
pub(super) struct Tried {
    new: Arc<Loaded>,
    bytes: Vec<u8>,
    percent: u8,
    _probation: Option<AbortOnDrop>,
}

/// Lets a component pass the gate, and gives it its share. The slot's turn is held.
pub(super) async fn begin(host: &Arc<Shared>, slot: &Slot, source: &GuestSource, file: PathBuf, percent: u8) -> Result<Swapped> {
    let began = Instant::now();
    if !(1..=99).contains(&percent) {
        bail!("a share of the calls is 1 to 99 in a hundred, and {percent} is none");
    }
    let served = host.dispatcher.registry().guest(&source.name).cloned();
    let served = served.ok_or_else(|| anyhow!("no version of guest `{}` is served beside which another could be tried", source.name))?;
    let mut history = host.swaps.history(source)?;
    gate::keep_served(source, &mut history, &served, false).await;
    let passed = gate::check(host, slot, source, &history, Component::File(file), Same::Refused, Some(&served)).await?;
    let Passed { new, bytes, .. } = passed;
    for version in [&served.version, &new.version] {
        if version.instance_policy() != InstancePolicy::Call {
            bail!("instances of guest `{}` outlive a call, so that two versions side by side would not have one memory", source.name);
        }
    }
    if migrate::is_due(host, migrate::Before::of(&served), &new).await? {
        bail!("the version migrates the guest's state, which then only one version can work on; swap all calls at once");
    }
    host.dispatcher.share(&new, percent)?;
    host.loader.note(What::Loaded, &new.name, new.version.digest());
    let gate_time = began.elapsed();
    let watch = probation::begin(host, &served, &new);
    let version = |guest: &Loaded| (guest.info.version.clone(), guest.version.digest().to_owned());
    let (from, to) = (Some(version(&served)), version(&new));
    let before = lock(&slot.tried).replace(Tried { new, bytes, percent, _probation: watch });
    if let Some(before) = before {
        gate::drain(before.new);
    }
    let (handed_over, state, differences) = (0, Stored::Untouched, Vec::new());
    let guest = source.name.clone();
    Ok(Swapped { guest, from, to, differences, handed_over, state, percent: Some(percent), gate_time, time: began.elapsed() })
}

/// Whether that version is the one that is tried.
pub(super) fn is_tried(slot: &Slot, digest: &str) -> bool {
    lock(&slot.tried).as_ref().is_some_and(|tried| tried.new.version.digest() == digest)
}

/// The digest of the version that is tried, and its share.
pub(super) fn of(slot: &Slot) -> Option<(String, u8)> {
    lock(&slot.tried).as_ref().map(|tried| (tried.new.version.digest().to_owned(), tried.percent))
}

/// The version that is tried, to be put in force.
pub(super) fn passed(slot: &Slot) -> Option<(Arc<Loaded>, Vec<u8>)> {
    lock(&slot.tried).as_ref().map(|tried| (tried.new.clone(), tried.bytes.clone()))
}

/// Ends the trial: all calls go to the version in force, which is the answer, if there was one.
pub(super) fn end(host: &Shared, slot: &Slot, guest: &str) -> Option<Swapped> {
    host.dispatcher.end_share(guest);
    let tried = lock(&slot.tried).take()?;
    let version = |guest: &Loaded| (guest.info.version.clone(), guest.version.digest().to_owned());
    let from = Some(version(&tried.new));
    let served = host.dispatcher.registry().guest(guest).cloned();
    let is_other = served.as_ref().is_none_or(|served| !served.version.is(&tried.new.version));
    if is_other {
        gate::drain(tried.new);
    }
    Some(Swapped {
        guest: guest.to_owned(),
        from,
        to: version(&*served?),
        differences: Vec::new(),
        handed_over: 0,
        state: Stored::Untouched,
        percent: None,
        gate_time: Duration::ZERO,
        time: Duration::ZERO,
    })
}
