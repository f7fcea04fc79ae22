//! How a host is: the figures that are read when somebody asks, and the answer to `guesthouse status`.

use super::{Shared, offers};
use crate::registry::Loaded;
use guesthouse_protocol::model::tasks::iso_8601;
use serde_json::{Value, json};
use std::sync::{Arc, PoisonError, Weak};

/// Lets the host's telemetry read what others keep. It does not keep the host alive.
pub(super) fn observe(shared: &Arc<Shared>) {
    let telemetry = &shared.loader.telemetry;
    let ask = |read: fn(&Shared) -> usize| {
        let host: Weak<Shared> = Arc::downgrade(shared);
        move || host.upgrade().map(|host| read(&host))
    };
    telemetry.observe("requests_in_flight", "Requests of clients that run now", ask(requests_in_flight));
    telemetry.observe("tasks_running", "Tasks that are worked on", ask(|host| host.dispatcher.tasks_running()));
    telemetry.observe("listeners", "Sessions and subscriptions that hear of changes", ask(|host| host.dispatcher.hub().counts().0));
    let calls = of_guests(shared, |guest| guest.version.calls_alive());
    telemetry.observe_guests("calls_alive", "Calls of a guest that are alive now", calls);
    let kept = of_guests(shared, |guest| guest.version.instances_kept());
    telemetry.observe_guests("instances_kept", "Instances of a guest that are kept between calls, in use or idle", kept);
}

/// A figure of each guest that is served.
fn of_guests(shared: &Arc<Shared>, read: fn(&Loaded) -> usize) -> impl Fn() -> Vec<(String, usize)> + use<> {
    let host = Arc::downgrade(shared);
    move || {
        let guests = host.upgrade().map(|host| host.dispatcher.registry());
        let guests = guests.iter().flat_map(|registry| registry.guests().to_vec());
        guests.map(|guest| (guest.name.to_string(), read(&guest))).collect()
    }
}

fn requests_in_flight(host: &Shared) -> usize {
    host.requests.in_flight()
}

/// Everything that `guesthouse status` shows.
pub(super) fn of(host: &Shared) -> Value {
    let registry = host.dispatcher.registry();
    let not_served = host.not_served.lock().unwrap_or_else(PoisonError::into_inner).clone();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "listen": host.config.server.listen.to_string(),
        "uptime_s": host.started.elapsed().as_secs(),
        "requests_in_flight": requests_in_flight(host),
        "listeners": host.dispatcher.hub().counts().0,
        "tasks_running": host.dispatcher.tasks_running(),
        "guests": registry.guests().iter().map(|guest| of_guest(host, guest)).collect::<Vec<_>>(),
        "not_served": not_served.iter().map(|(name, reason)| json!({ "name": name, "reason": reason })).collect::<Vec<_>>(),
    })
}

fn of_guest(host: &Shared, guest: &Loaded) -> Value {
    let calls: serde_json::Map<String, Value> =
        guest.version.figures().calls().into_iter().map(|(how, count)| (how.as_str().to_owned(), count.into())).collect();
    json!({
        "name": &*guest.name,
        "server": format!("{} {}", guest.info.name, guest.info.version),
        "digest": guest.version.digest(),
        "offers": offers(guest),
        "size_class": guest.version.class().as_str(),
        "calls_alive": guest.version.calls_alive(),
        "instances_kept": guest.version.instances_kept(),
        "calls": calls,
        "tried": host.swaps.tried(&guest.name).map(|(digest, percent)| json!({ "digest": digest, "percent": percent })),
        "versions": host.swaps.kept(&guest.name),
        "refused": host.swaps.refused(&guest.name).map(|(at_ms, reason)| json!({ "at": iso_8601(at_ms), "reason": reason })),
    })
}
