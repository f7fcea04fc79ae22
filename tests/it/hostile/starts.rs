//! What is wrong from the beginning: guests that are refused when they are loaded, while another guest is called.

use super::attack::{Attack, Start};
use super::sabotage::{Callback, Fault, Listing};
use super::stage::{beside_echo, guest, sources};
use guesthouse::config::Config;
use guesthouse::host::{GuestSource, Host};
use serde_json::json;

/// What has to come of loading a guest.
#[derive(Clone, Copy, Debug)]
pub enum Loading {
    /// It is refused in a sentence that has these words.
    Refused(&'static str),
    /// It is served, with so many of the things that it lists.
    Served(usize),
    /// What is wrong is left out, in these words, so that it is refused where another could go on in its stead; a host that
    /// starts with it serves so many of the things that it lists.
    LeftOut(&'static str, usize),
}

use Loading::{LeftOut, Refused, Served};

const LIMITS: &str = "limits = { cpu = \"300ms\", wall = \"2s\", memory = \"16MiB\", output = \"8MiB\" }";
/// Time enough for a guest to take all that it can.
const PATIENT: &str = "limits = { cpu = \"20s\", wall = \"60s\" }";

/// Tools of the guest whose callbacks go wrong.
const OWN_TOOLS: usize = 4;

/// A host that serves one guest, to which others come.
pub struct House {
    host: Host,
}

impl House {
    pub async fn open() -> Self {
        let config = Config::parse(&beside_echo("[server]\nprefix = \"always\"\n")).unwrap();
        let host = Host::start(config.clone(), sources(&config)).await.unwrap_or_else(|error| panic!("{error:#}"));
        Self { host }
    }

    /// Loads a guest while another is called: what is wrong with how that went, if anything is. The guest is gone afterwards.
    pub async fn receive(&self, source: GuestSource, list: &str, expected: Loading) -> Option<String> {
        let (name, beside) = (source.name.clone(), self.host.connect(Some("echo")).unwrap());
        let call = beside.request("tools/call", json!({ "name": "echo", "arguments": { "message": "well" } }));
        let (loaded, called) = tokio::join!(self.host.configure(source.clone()), call);
        let called = called.unwrap();
        assert_eq!(called["result"]["content"][0]["text"], "well", "beside {name}: {called}");
        let went = match (expected, loaded) {
            (Refused(part) | LeftOut(part, _), Err(error)) if format!("{error:#}").contains(part) => match expected {
                LeftOut(_, count) => {
                    let fresh = Host::start(Config::parse(&beside_echo("")).unwrap(), vec![source]).await;
                    listed(&fresh.unwrap(), &name, list, count).await
                }
                _ => None,
            },
            (Served(count), Ok(_)) => listed(&self.host, &name, list, count).await,
            (_, Ok(_)) => Some("it is served".into()),
            (_, Err(error)) => Some(format!("{error:#}")),
        };
        if self.host.serves(&name) {
            self.host.remove(&name).await.unwrap();
        }
        went.map(|went| format!("{name}: not {expected:?}, but {went}"))
    }
}

/// What a guest lists, if that is not as many as it should be.
async fn listed(host: &Host, guest: &str, list: &str, count: usize) -> Option<String> {
    let listed = host.connect(Some(guest)).unwrap().request(list, json!({})).await.unwrap();
    let entries = listed["result"].as_object().and_then(|result| result.values().find_map(|member| member.as_array()));
    (entries.map(Vec::len) != Some(count)).then(|| super::shown(&listed))
}

/// A guest of that table.
fn source(name: &str, folder: &str, table: &str) -> GuestSource {
    sources(&Config::parse(&guest(name, folder, table)).unwrap()).remove(0)
}

fn start(start: Start) -> Loading {
    match start {
        Start::Refuse => Refused("no such unit"),
        Start::Trap => Refused("the guest did not start"),
        Start::Loop => Refused("used up its processor time"),
        Start::Grow => Refused("ran out of the memory"),
        // Context functions do nothing in `init`; the guest itself looks.
        Start::Talk => LeftOut("`input-schema` is not JSON", Attack::ALL.len() - super::attacks::LEFT_OUT),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_fails_is_refused_in_a_sentence() {
    let house = House::open().await;
    let mut wrong = Vec::new();
    for case in Start::ALL {
        let guest = source(case.name(), "tests/guests/hostile", &format!("{LIMITS}\nconfig = {{ start = \"{}\" }}", case.name()));
        wrong.extend(house.receive(guest, "tools/list", start(*case)).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a guest with this fault in this callback is served, since nothing calls it while it is loaded, or its failure is
/// no reason not to.
fn is_served_with_a_fault_in(callback: Callback) -> bool {
    match callback {
        Callback::Describe | Callback::ListTools | Callback::ListTemplates | Callback::ListPrompts | Callback::Init => false,
        // Asked for each client again.
        Callback::ListResources => true,
        Callback::CallTool
        | Callback::ReadResource
        | Callback::Subscribe
        | Callback::Unsubscribe
        | Callback::GetPrompt
        | Callback::Complete
        | Callback::GetTask
        | Callback::UpdateTask
        | Callback::CancelTask
        | Callback::Migrate
        | Callback::Save
        | Callback::Restore => true,
    }
}

/// What is said of a fault in a callback that is called while the guest is loaded.
fn refusal(callback: Callback, fault: Fault) -> Loading {
    match (fault, callback) {
        (Fault::Trap, Callback::Init) => Refused("the guest did not start"),
        (Fault::Trap, _) => Refused("the guest crashed"),
        (Fault::Loop, _) => Refused("used up its processor time"),
        (Fault::Sleep, _) => Refused("did not finish before its deadline"),
        (Fault::Grow, _) => Refused("ran out of the memory"),
        (Fault::Hoard, _) => Served(OWN_TOOLS),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_in_a_callback_that_loading_calls_is_refused() {
    let house = House::open().await;
    let mut wrong = Vec::new();
    for callback in Callback::ALL {
        for fault in Fault::ALL {
            let (callback_name, fault_name) = (callback.name(), fault.name());
            let limits = if *fault == Fault::Hoard { PATIENT } else { LIMITS };
            let table = format!("{limits}\nconfig = {{ wrong = \"{callback_name} {fault_name}\" }}\ngrants = {{ state = true }}");
            let guest = source(&format!("{callback_name}-{fault_name}"), "tests/guests/saboteur", &table);
            let served = is_served_with_a_fault_in(*callback);
            let expected = if served { Served(OWN_TOOLS) } else { refusal(*callback, *fault) };
            wrong.extend(house.receive(guest, "tools/list", expected).await);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What comes of a list that is wrong: of the tools and the prompts, whose names are bounded, or of the templates.
fn list(callback: Callback, listing: Listing) -> Option<(&'static str, Loading)> {
    let (method, own) = match callback {
        Callback::ListTools => ("tools/list", OWN_TOOLS),
        Callback::ListPrompts => ("prompts/list", 1),
        Callback::ListTemplates => ("resources/templates/list", 1),
        _ => return None,
    };
    let loading = match listing {
        Listing::Many => Refused("entries (`limits.entries`)"),
        Listing::Endless | Listing::Circle => Refused("pages"),
        // The names of templates are for people: nothing is called by them. These two are the same, and three have odd names.
        Listing::StrangeNames if callback == Callback::ListTemplates => Served(5),
        Listing::LongNames if callback == Callback::ListTemplates => LeftOut("longer than 2048 bytes", own),
        Listing::LongNames => LeftOut("its name must have 1 to 256 bytes", own),
        Listing::StrangeNames => LeftOut("another of that name", own),
    };
    Some((method, loading))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_that_have_no_end_are_refused_and_names_that_cannot_be_are_left_out() {
    let house = House::open().await;
    let mut wrong = Vec::new();
    for callback in Callback::ALL {
        for listing in Listing::ALL {
            let Some((method, expected)) = list(*callback, *listing) else { continue };
            let (callback, listing) = (callback.name(), listing.name());
            let table = format!("{LIMITS}\nconfig = {{ wrong = \"{callback} {listing}\" }}");
            let guest = source(&format!("{callback}-{listing}"), "tests/guests/saboteur", &table);
            wrong.extend(house.receive(guest, method, expected).await);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
