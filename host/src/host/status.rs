//! How a host is: the figures that are read when somebody asks, and the answer to `guesthouse status`.

use super::{Shared, offers};
use crate::registry::Loaded;
use serde_json::{Value, json};
use std::sync::{Arc, Weak};

/// Lets the host's telemetry read what others keep. It does not keep the host alive.
pub(super) fn observe(shared: &Arc<Shared>) {
    let telemetry = &shared.telemetry;
    let ask = |read: fn(&Shared) -> usize| {
        let host: Weak<Shared> = Arc::downgrade(shared);
        move || host.upgrade().map(|host| read(&host))
    };
    telemetry.observe("requests_in_flight", "Requests of clients that run now", ask(requests_in_flight));
    telemetry.observe("tasks_running", "Tasks that are worked on", ask(|host| host.dispatcher.tasks_running()));
    telemetry.observe("listeners", "Sessions and subscriptions that hear of changes", ask(|host| host.dispatcher.hub().counts().0));
    let host = Arc::downgrade(shared);
    telemetry.observe_guests("calls_alive", "Calls of a guest that are alive now", move || {
        let guests = host.upgrade().map(|host| host.dispatcher.registry());
        let guests = guests.iter().flat_map(|registry| registry.guests().to_vec());
        guests.map(|guest| (guest.name.to_string(), guest.version.calls_alive())).collect()
    });
}

fn requests_in_flight(host: &Shared) -> usize {
    host.requests.in_flight()
}

/// Everything that `guesthouse status` shows.
pub(super) fn of(host: &Shared) -> Value {
    let registry = host.dispatcher.registry();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "listen": host.config.server.listen.to_string(),
        "uptime_s": host.started.elapsed().as_secs(),
        "requests_in_flight": requests_in_flight(host),
        "listeners": host.dispatcher.hub().counts().0,
        "tasks_running": host.dispatcher.tasks_running(),
        "guests": registry.guests().iter().map(|guest| of_guest(guest)).collect::<Vec<_>>(),
        "not_served": host.not_served.iter().map(|(name, reason)| json!({ "name": name, "reason": reason })).collect::<Vec<_>>(),
    })
}

fn of_guest(guest: &Loaded) -> Value {
    let calls: serde_json::Map<String, Value> =
        guest.version.figures().calls().into_iter().map(|(how, count)| (how.as_str().to_owned(), count.into())).collect();
    json!({
        "name": &*guest.name,
        "server": format!("{} {}", guest.info.name, guest.info.version),
        "digest": guest.version.digest(),
        "offers": offers(guest),
        "size_class": guest.version.class().as_str(),
        "calls_alive": guest.version.calls_alive(),
        "calls": calls,
    })
}
