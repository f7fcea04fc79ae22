//! Guests that reach for what is not theirs: folders, the network, secrets, keys of others. Each of these is tested at length
//! where it is made; here it is tried once over the whole host.

use super::stage::{Era, Ran, Stage, Transport, beside_echo, guest};
use super::{Expected, Harmless, Kind, Stopped};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

const SECRET: &str = "hush-hush-hush";
const GULP: Expected = Harmless("ok");
const TRANSPORTS: [(Transport, Era); 2] = [(Transport::Http, Era::Modern), (Transport::Stdio, Era::Handshake)];

/// Calls a tool, and says what the answer has to hold, or not to hold.
async fn check(stage: &mut Stage, tool: &str, arguments: Value, expected: Expected) -> Ran {
    let ran = stage.attack("tools/call", json!({ "name": tool, "arguments": arguments })).await;
    assert_eq!(expected.problem(&ran), None, "{tool} {arguments}");
    assert!(!ran.answer.to_string().contains(SECRET), "{tool} {arguments}");
    ran
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_path_leads_out_of_a_folder() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    for folder in ["granted/sub", "outside"] {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    std::fs::write(at("granted/file.txt"), "well").unwrap();
    std::fs::write(at("outside/secret.txt"), SECRET).unwrap();
    for (link, target) in [("out", at("outside")), ("secret", "../outside/secret.txt".into()), ("slash", "/".into())] {
        std::os::unix::fs::symlink(target, at("granted").join(link)).unwrap();
    }
    let grants = format!("grants = {{ dirs = [{{ host = {:?}, guest = \"/g\", write = true }}] }}", at("granted").display().to_string());
    let absolute = at("outside/secret.txt").display().to_string();
    for (transport, era) in TRANSPORTS {
        let mut stage = Stage::open(transport, era, &beside_echo(&guest("explorer", "tests/guests/explorer", &grants))).await;
        for (op, path, answer) in [
            ("read", "file.txt", "ok well"),
            ("read", "../outside/secret.txt", "error not-permitted"),
            ("read", "sub/../../outside/secret.txt", "error not-permitted"),
            ("read", &absolute, "error not-permitted"),
            ("read", "secret", "error not-permitted"),
            ("read", "secret/", "error"),
            ("read", "out/secret.txt", "error not-permitted"),
            ("list", "out/", "error not-permitted"),
            ("list", "..", "error not-permitted"),
            ("list", "../", "error not-permitted"),
            ("list", "slash", "error not-permitted"),
            ("write", "out/new.txt", "error not-permitted"),
            ("write", "../outside/new.txt", "error not-permitted"),
            ("mkdir", "out/new", "error not-permitted"),
            ("unlink", "out/secret.txt", "error not-permitted"),
        ] {
            let arguments = json!({ "op": op, "folder": "/g", "path": path });
            check(&mut stage, "explorer_act", arguments, Harmless(answer)).await;
        }
    }
    assert_eq!(std::fs::read_dir(at("outside")).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(at("outside/secret.txt")).unwrap(), SECRET);
}

/// Reads and draws as much at once as a number can say, of files without end, too: neither the host nor the machine holds it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_reads_more_at_once_than_the_host_gives() {
    let root = tempfile::tempdir().unwrap();
    std::fs::File::create(root.path().join("sparse")).unwrap().set_len(1 << 40).unwrap();
    let limits = "limits = { cpu = \"5s\", wall = \"20s\", memory = \"16MiB\" }";
    let grants = format!("grants = {{ dirs = [{{ host = {:?}, guest = \"/g\" }}] }}", root.path().display().to_string());
    let table = format!("{limits}\n{grants}");
    for (transport, era) in TRANSPORTS {
        let mut stage = Stage::open(transport, era, &beside_echo(&guest("explorer", "tests/guests/explorer", &table))).await;
        for (what, expected) in [
            ("file", GULP),
            ("stream", GULP),
            ("random", Kind("handler_crash")),
            ("input", Harmless("ok 0")),
            ("zeroes", Kind("handler_crash")),
        ] {
            check(&mut stage, "explorer_gulp", json!({ "what": what }), expected).await;
        }
    }
}

/// What a server was asked for, each time with which key.
type Seen = Arc<Mutex<Vec<(String, Option<String>)>>>;

/// A server on this machine.
struct Server {
    address: SocketAddr,
    seen: Seen,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, seen) = (listener.local_addr().unwrap(), Seen::default());
        let shared = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let seen = shared.clone();
                let service = service_fn(move |request| answer(request, seen.clone()));
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, seen }
    }
}

async fn answer(request: Request<Incoming>, seen: Seen) -> Result<Response<Full<Bytes>>, Infallible> {
    let key = request.headers().get("x-key").map(|key| key.to_str().unwrap().to_owned());
    let (path, query) = (request.uri().path().to_owned(), request.uri().query().unwrap_or_default().to_owned());
    drop(request.into_body().collect().await);
    seen.lock().unwrap().push((path.clone(), key));
    let response = match path.as_str() {
        "/never" => std::future::pending().await,
        "/redirect" => Response::builder().status(302).header("location", query),
        _ => Response::builder(),
    };
    Ok(response.body(Full::new(Bytes::from_static(b"well"))).unwrap())
}

/// Requests that a guest must not send, and one that it may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_gets_inside_and_no_secret_gets_out() {
    let (granted, inside) = (Server::start().await, Server::start().await);
    let folder = tempfile::tempdir().unwrap();
    let (key, port) = (folder.path().join("key"), inside.address.port());
    std::fs::write(&key, SECRET).unwrap();
    let own = granted.address;
    let table = format!(
        "limits = {{ wall = \"3s\" }}\ngrants = {{ http = [\"http://*:*\", \"http://{own}\"] }}\n\
         secrets = {{ \"http://{own}\" = {{ header = \"X-Key\", file = {:?} }} }}",
        key.display().to_string()
    );
    for (transport, era) in TRANSPORTS {
        let mut stage = Stage::open(transport, era, &beside_echo(&guest("outgoing", "tests/guests/outgoing", &table))).await;
        let send = |ask: Value| json!({ "requests": [ask] });
        // Addresses, in all their spellings; a name that leads to one; a redirect to each.
        let mut refused = Vec::new();
        for host in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "2130706433", "0x7f.1", "127.0.0.1.", "localhost"] {
            let target = format!("{host}:{port}");
            refused.push(json!({ "authority": own.to_string(), "path": format!("/redirect?http://{target}/"), "follow": true }));
            refused.push(json!({ "authority": target }));
        }
        refused.push(json!({ "authority": "169.254.169.254", "path": "/latest/meta-data/" }));
        // The header is the host's to set, and nobody sends it back.
        refused.push(json!({ "authority": own.to_string(), "headers": { "x-key": "mine" } }));
        refused.push(json!({ "authority": own.to_string(), "method": "TRACE" }));
        for ask in refused {
            let ran = check(&mut stage, "outgoing_send", send(ask.clone()), Harmless("error")).await;
            let said = ran.answer.to_string();
            assert!(said.contains("HttpRequestDenied") || said.contains("DestinationIpProhibited"), "{ask}: {said}");
        }
        assert!(inside.seen.lock().unwrap().is_empty());
        granted.seen.lock().unwrap().clear();
        check(&mut stage, "outgoing_send", send(json!({ "authority": own.to_string(), "path": "/a" })), Harmless("well")).await;
        assert_eq!(*granted.seen.lock().unwrap(), [("/a".to_owned(), Some(SECRET.to_owned()))]);
        check(&mut stage, "outgoing_environment", json!({}), Harmless("\"text\":\"\"")).await;
        let waits = send(json!({ "authority": own.to_string(), "path": "/never" }));
        check(&mut stage, "outgoing_send", waits, Stopped("handler_timeout")).await;
    }
}

/// Keys that look as if they led to those of others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_and_no_bucket_is_anothers() {
    let grants = "grants = { state = true }";
    let guests = ["one", "two"].map(|name| guest(name, "tests/guests/state", grants)).concat();
    for (transport, era) in TRANSPORTS {
        let mut stage = Stage::open(transport, era, &beside_echo(&guests)).await;
        let run = |steps: Value| json!({ "steps": steps });
        for bucket in ["guest", "principal"] {
            let left = run(json!([{ "bucket": bucket, "do": "set", "key": "secret", "value": SECRET }]));
            stage.call("one_run", left).await;
            let looks = run(json!([{ "bucket": bucket, "do": "list" }, { "bucket": bucket, "do": "get", "key": "secret" }]));
            check(&mut stage, "two_run", looks, Harmless(r#"[{\"cursor\":null,\"keys\":[]},null]"#)).await;
        }
        for bucket in [
            "",
            "one",
            "guest/one",
            "one/guest",
            "guest\0one",
            "../one",
            "principal/bob",
            "principal:bob",
            "session/x",
            "GUEST",
            "guest ",
            "%67uest",
        ] {
            let steps = run(json!([{ "bucket": bucket, "do": "get", "key": "secret" }]));
            check(&mut stage, "two_run", steps, Harmless("no-such-store")).await;
        }
        for key in ["../one/secret", "one/secret", "guest/one/secret", "/secret", "secret/", "%73ecret", "*", "%", "_ecret", "' OR 1=1 --"]
        {
            let steps = run(json!([{ "bucket": "guest", "do": "get", "key": key }]));
            check(&mut stage, "two_run", steps.clone(), Harmless("[null]")).await;
            // Nor is it one of one's own by another name.
            check(&mut stage, "one_run", steps, Harmless("[null]")).await;
        }
        let steps = run(json!([{ "bucket": "guest", "do": "get", "key": "secret\0" }]));
        check(&mut stage, "two_run", steps, Harmless("none of them zero")).await;
    }
}

/// The audit trail has each bucket once for each call, however often a guest opens it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_uses_is_no_flood_in_the_audit_trail() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let audit = format!("[admin]\naudit = {:?}\n", file.display().to_string());
    let guests = audit + &guest("state", "tests/guests/state", "grants = { state = true }");
    let mut stage = Stage::open(Transport::Http, Era::Modern, &beside_echo(&guests)).await;
    let open = |bucket: &str| json!({ "bucket": bucket, "do": "open" });
    let steps: Vec<Value> = (0..500).flat_map(|_| [open("guest"), open("principal"), open("nothing")]).collect();
    check(&mut stage, "state_run", json!({ "steps": steps }), Harmless("open")).await;
    // What fails afterwards is in the trail afterwards.
    stage.call("state_run", json!({ "steps": [], "end": "trap" })).await;
    let trail = loop {
        let trail = std::fs::read_to_string(&file).unwrap();
        if trail.contains("handler_crash") || trail.contains("\"failed\"") {
            break trail;
        }
        tokio::task::yield_now().await;
    };
    let events: Vec<Value> = trail.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let used = |bucket: &str| events.iter().filter(|event| event["event"] == "granted" && event["value"] == bucket).count();
    assert_eq!((used("guest"), used("principal")), (1, 1), "{trail}");
}
