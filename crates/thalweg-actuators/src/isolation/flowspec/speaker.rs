//! The thread that keeps the session, and announces and withdraws rules.
//!
//! It remembers which rules are in force. Whenever the session is established again, it announces all of them again. It answers
//! a command when the kernel has taken the message: BGP acknowledges no rules.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, never, select};
use rustbgpd_wire::{Afi, RouteRefreshSubtype};
use thalweg_control::isolate::{Input, RedirectionId};
use thalweg_wire::FlowKey;

use super::FlowspecOptions;
use super::rule::{FAMILIES, Rule, announce, family_name, withdraw};
use super::session::{BgpSession, Incoming, connect};

/// Maximum number of commands that are handled together.
const BATCH: usize = 1_024;

/// Bytes waiting for the peer from which on commands wait too.
const MAX_OUTPUT: u64 = 1 << 18;

/// Interval at which waiting bytes are offered to the kernel again.
const FLUSH_INTERVAL: Duration = Duration::from_millis(2);

/// Maximum time without a look at timers.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Time before the second attempt to establish a session; doubles with each, up to the maximum.
const RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(30);

/// A session that lasts this long ends a series of failures.
const STABLE: Duration = Duration::from_secs(30);

/// A command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    Redirect(RedirectionId, FlowKey),
    Release(RedirectionId, FlowKey),
}

/// What the isolator reads from the thread.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// Why rules are not in force.
    pub(super) error: Option<String>,
    /// Repairs that nobody has read, the oldest first.
    pub(super) repaired: Vec<String>,
    /// Rules announced again because a session had ended.
    pub(super) repairs: u64,
    /// Redirections and releases.
    pub(super) calls: u64,
    /// Of those, failed.
    pub(super) failed_calls: u64,
}

/// Repairs to remember.
const MAX_REPAIRED: usize = 16;

/// Returns the status, whatever happened to the other thread.
pub(super) fn locked(status: &Mutex<Status>) -> MutexGuard<'_, Status> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread's state.
pub(super) struct Speaker {
    options: FlowspecOptions,
    requests: Receiver<Request>,
    /// Disconnected when the speaker is to stop.
    running: Receiver<()>,
    answers: Sender<Input>,
    status: Arc<Mutex<Status>>,
    /// Rules in force, with their redirections.
    rules: BTreeMap<Rule, BTreeSet<RedirectionId>>,
    /// Answers that are due when the kernel has taken this many bytes.
    pending: VecDeque<(u64, Request)>,
    link: Link,
    /// Why there is no session.
    reason: String,
    failures: u32,
    established: Option<Instant>,
}

/// The way to the peer.
enum Link {
    /// No connection before this time.
    Waiting(Instant),
    Connecting(Receiver<Incoming>),
    Open(Box<BgpSession>, Receiver<Incoming>),
}

impl Speaker {
    pub(super) fn new(
        options: FlowspecOptions,
        requests: Receiver<Request>,
        running: Receiver<()>,
        answers: Sender<Input>,
        status: Arc<Mutex<Status>>,
        now: Instant,
    ) -> Speaker {
        let speaker = Speaker {
            options,
            requests,
            running,
            answers,
            status,
            rules: BTreeMap::new(),
            pending: VecDeque::new(),
            link: Link::Waiting(now),
            reason: "connecting".to_owned(),
            failures: 0,
            established: None,
        };
        speaker.report();
        speaker
    }

    /// Runs until nobody wants it to. Then it ends the session, with which the peer drops all rules.
    pub(super) fn run(mut self) {
        loop {
            let incoming = match &self.link {
                Link::Waiting(_) => never(),
                Link::Connecting(incoming) | Link::Open(_, incoming) => incoming.clone(),
            };
            let requests = if self.is_congested() { never() } else { self.requests.clone() };
            let wait = self.wait(Instant::now());
            select! {
                recv(self.running) -> _ => break,
                recv(incoming) -> event => match event {
                    Ok(event) => self.receive(event, Instant::now()),
                    Err(_) => self.down("connection lost".to_owned(), Instant::now()),
                },
                recv(requests) -> request => match request {
                    Ok(request) => self.take(request, Instant::now()),
                    Err(_) => break,
                },
                default(wait) => {}
            }
            self.advance(Instant::now());
        }
        if let Link::Open(session, _) = &mut self.link {
            session.shut_down(Instant::now());
        }
    }

    fn session(&self) -> Option<&BgpSession> {
        match &self.link {
            Link::Open(session, _) => Some(session),
            _ => None,
        }
    }

    /// Whether the peer reads more slowly than commands arrive.
    fn is_congested(&self) -> bool {
        self.session().is_some_and(|session| session.queued() - session.written() > MAX_OUTPUT)
    }

    /// Returns the time until something is due.
    fn wait(&self, now: Instant) -> Duration {
        let until = |at: Instant| at.saturating_duration_since(now);
        let due = match &self.link {
            Link::Waiting(at) => until(*at),
            Link::Connecting(_) => MAX_WAIT,
            Link::Open(session, _) if session.queued() > session.written() => FLUSH_INTERVAL,
            Link::Open(session, _) => session.deadline().map_or(MAX_WAIT, until),
        };
        due.min(MAX_WAIT)
    }

    fn receive(&mut self, event: Incoming, now: Instant) {
        match event {
            Incoming::Connected(stream) => {
                let waiting = std::mem::replace(&mut self.link, Link::Waiting(now));
                if let Link::Connecting(incoming) = waiting {
                    let session = BgpSession::open(&self.options, stream, now);
                    self.link = Link::Open(Box::new(session), incoming);
                }
            }
            event => match (&mut self.link, event) {
                (Link::Open(session, _), event) => session.receive(event, now),
                (_, Incoming::Closed(reason)) => self.down(reason, now),
                _ => {}
            },
        }
    }

    /// Does what is due: connects, announces all rules over a new session, notices the end of one, answers.
    fn advance(&mut self, now: Instant) {
        match &mut self.link {
            Link::Waiting(at) if now >= *at => match connect(&self.options) {
                Ok(incoming) => self.link = Link::Connecting(incoming),
                Err(reason) => self.down(reason, now),
            },
            Link::Waiting(_) | Link::Connecting(_) => {}
            Link::Open(session, _) => {
                session.advance(now);
                if session.take_established() {
                    self.begin(now);
                }
                self.refresh();
            }
        }
        self.answer(now);
    }

    /// A session is established: announces all rules.
    fn begin(&mut self, now: Instant) {
        self.established = Some(now);
        let Link::Open(session, _) = &self.link else { return };
        let rules: BTreeSet<Rule> =
            self.rules.keys().filter(|rule| session.accepts(rule.family())).copied().collect();
        if !rules.is_empty() {
            let mut status = locked(&self.status);
            status.repairs += rules.len() as u64;
            if status.repaired.len() == MAX_REPAIRED {
                status.repaired.remove(0);
            }
            status.repaired.push(format!("{} rules announced again to {}", rules.len(), self.options.peer));
        }
        self.transmit(&rules);
        self.report();
    }

    /// Repeats the rules that the peer asks for.
    fn refresh(&mut self) {
        let Link::Open(session, _) = &mut self.link else { return };
        for family in session.take_refreshes() {
            let rules = self.rules.keys().filter(|rule| rule.family() == family).copied().collect();
            self.mark(family, RouteRefreshSubtype::BoRR);
            self.transmit(&rules);
            self.mark(family, RouteRefreshSubtype::EoRR);
        }
    }

    fn mark(&mut self, family: Afi, subtype: RouteRefreshSubtype) {
        if let Link::Open(session, _) = &mut self.link {
            session.mark_refresh(family, subtype);
        }
    }

    /// Handles a command and those that wait behind it.
    fn take(&mut self, first: Request, now: Instant) {
        let mut changed = BTreeSet::new();
        let mut taken = Vec::new();
        let rest: Vec<Request> = self.requests.try_iter().take(BATCH - 1).collect();
        for request in std::iter::once(first).chain(rest) {
            locked(&self.status).calls += 1;
            match request {
                Request::Redirect(id, key) => {
                    let rule = Rule::of(&key);
                    if let Some(reason) = self.refusal(rule.family()) {
                        self.fail(id, reason);
                        continue;
                    }
                    let flows = self.rules.entry(rule).or_default();
                    if flows.is_empty() {
                        changed.insert(rule);
                    }
                    flows.insert(id);
                }
                Request::Release(id, key) => {
                    changed.extend(self.forget(id, &key));
                }
            }
            taken.push(request);
        }
        self.transmit(&changed);
        // Without a session, the peer has no rules: nothing is to be withdrawn.
        let at = self.session().map_or(0, BgpSession::queued);
        self.pending.extend(taken.into_iter().map(|request| (at, request)));
        self.report();
        self.answer(now);
    }

    /// Removes a redirection. Returns its rule, if no other redirection has it.
    fn forget(&mut self, id: RedirectionId, key: &FlowKey) -> Option<Rule> {
        let rule = Rule::of(key);
        let flows = self.rules.get_mut(&rule)?;
        flows.remove(&id);
        if !flows.is_empty() {
            return None;
        }
        self.rules.remove(&rule);
        Some(rule)
    }

    /// Returns why flows of a family cannot be redirected now.
    fn refusal(&self, family: Afi) -> Option<String> {
        let peer = self.options.peer;
        match self.session().filter(|session| session.is_established()) {
            None => Some(format!("no BGP session with {peer}: {}", self.reason)),
            Some(session) if !session.accepts(family) => {
                Some(format!("{peer} does not accept {} FlowSpec", family_name(family)))
            }
            Some(_) if !self.options.action.applies_to(family) => {
                Some(format!("{} does not apply to {}", self.options.action, family_name(family)))
            }
            Some(_) => None,
        }
    }

    fn fail(&self, id: RedirectionId, reason: String) {
        locked(&self.status).failed_calls += 1;
        let _ = self.answers.send(Input::Failed(id, reason));
    }

    /// Announces those of the rules that are in force, and withdraws the others.
    fn transmit(&mut self, rules: &BTreeSet<Rule>) {
        let Link::Open(session, _) = &mut self.link else { return };
        for family in FAMILIES {
            if !session.accepts(family) {
                continue;
            }
            let of_family = rules.iter().filter(|rule| rule.family() == family).copied();
            let (kept, gone): (Vec<Rule>, Vec<Rule>) =
                of_family.partition(|rule| self.rules.contains_key(rule));
            let encoding = session.encoding();
            let updates = withdraw(&gone, family, encoding).and_then(|mut updates| {
                updates.extend(announce(&kept, family, self.options.action, encoding)?);
                Ok(updates)
            });
            match updates {
                Ok(updates) => updates.into_iter().for_each(|update| session.update(update)),
                Err(reason) => session.fail(reason),
            }
        }
    }

    /// Answers requests whose messages the kernel has taken. Notices the end of the session.
    fn answer(&mut self, now: Instant) {
        let written = match &mut self.link {
            Link::Open(session, _) => {
                session.flush(now);
                if let Some(reason) = session.ended() {
                    let reason = reason.to_owned();
                    return self.down(reason, now);
                }
                session.written()
            }
            _ => u64::MAX,
        };
        while let Some((_, request)) = self.pending.pop_front_if(|(at, _)| *at <= written) {
            let _ = self.answers.send(match request {
                Request::Redirect(id, _) => Input::Redirected(id),
                Request::Release(id, _) => Input::Released(id),
            });
        }
    }

    /// There is no session any more, so the peer has dropped all rules.
    fn down(&mut self, reason: String, now: Instant) {
        for (_, request) in std::mem::take(&mut self.pending) {
            match request {
                Request::Release(id, _) => {
                    let _ = self.answers.send(Input::Released(id));
                }
                Request::Redirect(id, key) => {
                    self.forget(id, &key);
                    self.fail(id, format!("BGP session with {} ended: {reason}", self.options.peer));
                }
            }
        }
        let was_stable = self.established.take().is_some_and(|since| now.duration_since(since) >= STABLE);
        self.failures = if was_stable { 0 } else { self.failures };
        let pause = RETRY.saturating_mul(1 << self.failures.min(10)).min(MAX_RETRY);
        self.failures += 1;
        self.link = Link::Waiting(now + pause);
        self.reason = reason;
        self.report();
    }

    /// Stores what is wrong.
    fn report(&self) {
        let peer = self.options.peer;
        let error = match self.session().filter(|session| session.is_established()) {
            None => Some(format!("no BGP session with {peer}: {}", self.reason)),
            Some(session) => {
                let refused = FAMILIES.into_iter().find(|family| {
                    !session.accepts(*family) && self.rules.keys().any(|rule| rule.family() == *family)
                });
                refused.map(|family| format!("{peer} no longer accepts {} FlowSpec", family_name(family)))
            }
        };
        locked(&self.status).error = error;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crossbeam_channel::{bounded, unbounded};

    use super::super::tests::{Peer, listener, options};
    use super::*;

    /// Creates a speaker, and returns the senders without which it stops.
    fn speaker(options: FlowspecOptions, now: Instant) -> (Speaker, Sender<()>, Sender<Request>) {
        let (sender, requests) = bounded(1);
        let ((answers, _), (keeps_running, running)) = (unbounded(), bounded(0));
        let speaker = Speaker::new(options, requests, running, answers, Arc::default(), now);
        (speaker, keeps_running, sender)
    }

    #[test]
    fn attempts_to_connect_are_ever_rarer_until_a_session_has_lasted() {
        let now = Instant::now();
        let (mut speaker, _running, _requests) = speaker(options("127.0.0.1:179".parse().unwrap()), now);
        assert_eq!(speaker.wait(now), Duration::ZERO, "the first is at once");
        let mut pause = |established| {
            speaker.established = established;
            speaker.down("connection lost".to_owned(), now);
            let Link::Waiting(at) = speaker.link else { panic!("it waits") };
            at.duration_since(now).as_secs()
        };
        let pauses: Vec<u64> = (0..7).map(|_| pause(None)).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(pause(now.checked_sub(STABLE / 2)), 30, "a short session changes nothing");
        assert_eq!(pause(now.checked_sub(STABLE)), 1);
    }

    #[test]
    fn a_peer_that_reads_nothing_does_not_hold_up_a_stop() {
        let listener = listener();
        let (mut speaker, running, _requests) =
            speaker(options(listener.local_addr().unwrap()), Instant::now());
        // More than the buffers of the kernel hold.
        for number in 0..300_000_u32 {
            let (port, other) = (number % 60_000, number / 60_000);
            let key: FlowKey = format!("tcp [2001:db8::1]:{port} > [2001:db8::2]:{other}").parse().unwrap();
            speaker.rules.insert(Rule::of(&key), BTreeSet::from([RedirectionId(number.into())]));
        }
        let status = Arc::clone(&speaker.status);
        let thread = std::thread::spawn(move || speaker.run());
        let _peer = Peer::established(&listener);
        while locked(&status).repairs == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(running);
        thread.join().unwrap();
    }
}
