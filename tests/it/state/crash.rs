//! Processes that are killed while they commit to one file: what was acknowledged is there, and nothing that was not begun.
//!
//! A worker is this same test program, told to run [`worker`] alone. In each of its lanes it makes one commit after the other and
//! says so after each. The test kills workers in the middle of it, looks at what their lanes left, and starts others in
//! their place.

use guesthouse::storage::{Backend, Commit, CommitError, Part, Quota, Space, Sqlite};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const WORKERS: usize = 3;
const LANES: usize = 4;
/// Acknowledgements after which a worker is killed, at most.
const ACKS_MAX: u64 = 60;
/// Begins each line of a worker, which writes beside the test harness.
const ACK: &str = "ack ";

fn space(name: &str) -> Space {
    Space { realm: "crash".into(), name: name.into() }
}

fn lane_name(worker: usize, lane: usize) -> String {
    format!("lane-{worker}-{lane}")
}

async fn number(backend: &dyn Backend, space: Space, key: &str) -> (u64, Option<u64>) {
    let record = backend.get(space, vec![key.into()]).await.unwrap().remove(0);
    let value = record.as_ref().map_or(0, |record| std::str::from_utf8(&record.value).unwrap().parse().unwrap());
    (value, record.map(|record| record.revision))
}

/// Makes the next commit of a lane: its number in two places, a key of its own, and one more in the total of all lanes.
async fn step(backend: &dyn Backend, lane: &str) -> u64 {
    let own = space(lane);
    let (last, _) = number(backend, own.clone(), "last").await;
    let next = last + 1;
    loop {
        let (total, revision) = number(backend, space("total"), "all").await;
        let mut part = Part::new(own.clone(), Quota::NONE);
        let text = |number: u64| Some(number.to_string().into());
        part.writes = vec![("last".into(), text(next)), ("again".into(), text(next)), (format!("log/{next:08}"), text(next))];
        let mut all = Part::new(space("total"), Quota::NONE);
        all.seen = vec![("all".into(), revision)];
        all.writes = vec![("all".into(), text(total + 1))];
        match backend.commit(Commit { parts: vec![part, all] }).await {
            Ok(()) => return next,
            Err(CommitError::Conflict) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Not a test: what a worker runs. It is told its file and its number on standard input.
#[test]
#[ignore = "a part of the crash tests, which start it"]
fn worker() {
    let mut told = String::new();
    std::io::stdin().lock().read_line(&mut told).unwrap();
    let Some((worker, path)) = told.trim_end().split_once(' ') else { return };
    let worker: usize = worker.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let sqlite = Sqlite::open(Path::new(path)).await.unwrap();
        let sqlite = &sqlite;
        let lanes = (0..LANES).map(|lane| async move {
            let lane = lane_name(worker, lane);
            loop {
                let number = step(sqlite, &lane).await;
                let mut out = std::io::stdout().lock();
                // One write, so that no line is torn.
                out.write_all(format!("{ACK}{lane} {number}\n").as_bytes()).unwrap();
                out.flush().unwrap();
            }
        });
        drive(lanes.collect()).await;
    });
}

/// Drives all lanes side by side, for ever.
async fn drive(lanes: Vec<impl Future<Output = ()>>) {
    let mut lanes: Vec<_> = lanes.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|context| {
        lanes.iter_mut().for_each(|lane| assert!(lane.as_mut().poll(context).is_pending()));
        std::task::Poll::<()>::Pending
    })
    .await;
}

struct Worker {
    number: usize,
    child: Child,
    lines: BufReader<ChildStdout>,
    /// The newest number that each lane acknowledged.
    acknowledged: BTreeMap<String, u64>,
}

impl Worker {
    fn start(number: usize, file: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "state::crash::worker", "--ignored", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(child.stdin.take().unwrap(), "{number} {}", file.display()).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { number, child, lines, acknowledged: BTreeMap::new() }
    }

    /// Reads a line; false where there are no more. What a killed process did not finish has no line end.
    fn read(&mut self) -> bool {
        let mut line = String::new();
        if self.lines.read_line(&mut line).unwrap() == 0 {
            return false;
        }
        let ack = line.rsplit_once(ACK).and_then(|(_, ack)| ack.strip_suffix('\n')?.split_once(' '));
        if let Some((lane, number)) = ack {
            self.acknowledged.insert(lane.to_owned(), number.parse().unwrap());
        }
        true
    }

    /// Kills it after so many lines, and takes in what it had said by then.
    fn kill_after(mut self, lines: u64) -> (usize, BTreeMap<String, u64>) {
        for _ in 0..lines {
            assert!(self.read(), "a worker ended by itself");
        }
        self.child.kill().unwrap();
        while self.read() {}
        self.child.wait().unwrap();
        (self.number, self.acknowledged)
    }
}

/// What a lane left is whole, has all that was acknowledged, and at most the one commit more that was under way.
async fn check(backend: &dyn Backend, lane: &str, acknowledged: u64) -> u64 {
    let own = space(lane);
    let (last, _) = number(backend, own.clone(), "last").await;
    assert!(last == acknowledged || last == acknowledged + 1, "{lane}: {acknowledged} acknowledged, and {last} found");
    assert_eq!(number(backend, own.clone(), "again").await.0, last, "{lane}");
    let keys = backend.keys(own, None, usize::MAX >> 1).await.unwrap().keys;
    let log: Vec<String> = keys.into_iter().filter(|key| key.starts_with("log/")).collect();
    assert_eq!(log, (1..=last).map(|number| format!("log/{number:08}")).collect::<Vec<_>>(), "{lane}");
    last
}

async fn kill_for(time: Duration) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state/state.db");
    let mut random = Instant::now().elapsed().subsec_nanos().wrapping_add(std::process::id()) | 1;
    let backend = Sqlite::open(&file).await.unwrap();
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    let mut workers: Vec<Worker> = (0..WORKERS).map(|number| Worker::start(number, &file)).collect();
    let until = Instant::now() + time;
    let mut kills = 0;
    while !workers.is_empty() {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        let worker = workers.swap_remove(random as usize % workers.len());
        let (number, acknowledged) = worker.kill_after(u64::from(random >> 8) % ACKS_MAX + 1);
        kills += 1;
        for lane in (0..LANES).map(|lane| lane_name(number, lane)) {
            // One that said nothing since it was started can still have made one commit.
            let said = acknowledged.get(&lane).or(last.get(&lane)).copied().unwrap_or_default();
            last.insert(lane.clone(), check(&backend, &lane, said).await);
        }
        if Instant::now() < until {
            workers.push(Worker::start(number, &file));
        }
    }
    let sum: u64 = last.values().sum();
    assert_eq!(number(&backend, space("total"), "all").await.0, sum, "after {kills} kills");
    assert!(kills >= WORKERS && sum > 0);
    drop(backend);
    let reopened = Sqlite::open(&file).await.unwrap();
    assert_eq!(number(&reopened, space("total"), "all").await.0, sum);
}

#[tokio::test]
async fn killed_processes_leave_what_they_acknowledged_and_no_more() {
    kill_for(Duration::from_secs(3)).await;
}

/// `cargo test -p tests --test it state::crash -- --ignored --exact state::crash::the_same_for_a_minute`; `CRASH_SECONDS` for longer.
#[tokio::test]
#[ignore = "takes a minute"]
#[expect(clippy::disallowed_methods, reason = "how long a test runs is no configuration of the host")]
async fn the_same_for_a_minute() {
    let seconds = std::env::var("CRASH_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    kill_for(Duration::from_secs(seconds)).await;
}
