//! The speaker with a peer whose messages the tests choose.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use bytes::BytesMut;
use proptest::prelude::*;
use rustbgpd_wire::{
    Afi, Capability, FlowSpecRule, MAX_MESSAGE_LEN, Message, NotificationCode, NotificationMessage,
    OpenMessage, PathAttribute, Safi, decode_message, encode_message, peek_message_length,
};
use thalweg_control::isolate::RedirectionId;
use thalweg_wire::FlowKey;

use super::session::{BgpSession, Incoming};
use super::*;

/// Maximum time of any step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const NOW: Timestamp = Timestamp(0);

pub(super) fn options(peer: SocketAddr) -> FlowspecOptions {
    FlowspecOptions {
        peer,
        local_address: None,
        local_as: 64_501,
        peer_as: 64_500,
        router_id: None,
        hold_time: 90,
        password: None,
        action: Action::Mark(1),
    }
}

/// The router's end of a connection.
pub(super) struct Peer {
    stream: TcpStream,
    received: BytesMut,
}

impl Peer {
    fn accept(listener: &TcpListener) -> Peer {
        let stream = listener.accept().unwrap().0;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Peer { stream, received: BytesMut::new() }
    }

    /// The same, with an established session.
    pub(super) fn established(listener: &TcpListener) -> Peer {
        let mut peer = Peer::accept(listener);
        assert!(matches!(peer.next(), Some(Message::Open(_))));
        peer.send(&Message::Open(open(90)));
        peer.send(&Message::Keepalive);
        assert_eq!(peer.next(), Some(Message::Keepalive));
        peer
    }

    fn send(&mut self, message: &Message) {
        self.stream.write_all(&encode_message(message).unwrap()).unwrap();
    }

    /// Returns the next message; `None` at the end of the connection.
    fn next(&mut self) -> Option<Message> {
        loop {
            match peek_message_length(&self.received, MAX_MESSAGE_LEN).unwrap() {
                Some(length) if self.received.len() >= usize::from(length) => {
                    let mut bytes = self.received.split_to(length.into()).freeze();
                    return Some(decode_message(&mut bytes, MAX_MESSAGE_LEN).unwrap());
                }
                _ => {}
            }
            let mut chunk = [0; 4_096];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(count) => self.received.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Returns the next NOTIFICATION message, as code and subcode.
    fn notification(&mut self) -> (NotificationCode, u8) {
        loop {
            let message = self.next().expect("the connection lasts");
            if let Message::Notification(NotificationMessage { code, subcode, .. }) = message {
                return (code, subcode);
            }
        }
    }
}

fn open(hold_time: u16) -> OpenMessage {
    let families = [Afi::Ipv4, Afi::Ipv6];
    let family = |afi| Capability::MultiProtocol { afi, safi: Safi::FlowSpec };
    let mut capabilities = families.map(family).to_vec();
    capabilities.push(Capability::FourOctetAs { asn: 64_500 });
    let bgp_identifier = "192.0.2.1".parse().unwrap();
    OpenMessage { version: 4, my_as: 64_500, hold_time, bgp_identifier, capabilities }
}

pub(super) fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn started(listener: &TcpListener) -> Flowspec {
    let mut flowspec = Flowspec::new(options(listener.local_addr().unwrap()));
    flowspec.start().unwrap();
    flowspec
}

fn flow(port: u16) -> FlowKey {
    format!("tcp 192.0.2.7:{port} > 198.51.100.9:443").parse().unwrap()
}

fn redirect(flowspec: &mut Flowspec, id: u64, key: FlowKey) -> Option<Input> {
    flowspec.execute(Command::Redirect(RedirectionId(id), key), NOW)
}

/// Waits for this number of answers.
#[track_caller]
fn answers(flowspec: &mut Flowspec, count: usize) -> Vec<Input> {
    let until = Instant::now() + PATIENCE;
    let mut answers = Vec::new();
    while answers.len() < count {
        assert!(Instant::now() < until, "{} of {count}", answers.len());
        answers.extend(flowspec.answers());
        std::thread::sleep(Duration::from_millis(1));
    }
    answers
}

/// Waits for an error that contains this text.
#[track_caller]
fn wait_for_error(flowspec: &mut Flowspec, text: &str) {
    let until = Instant::now() + PATIENCE;
    let mut last = String::new();
    while !last.contains(text) {
        assert!(Instant::now() < until, "{last:?} does not contain {text:?}");
        last = flowspec.maintain(NOW).err().unwrap_or_default();
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[track_caller]
fn wait_until_established(flowspec: &mut Flowspec) {
    let until = Instant::now() + PATIENCE;
    while let Err(error) = flowspec.maintain(NOW) {
        assert!(Instant::now() < until, "{error}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Applies an UPDATE message to a table of rules.
fn apply(table: &mut BTreeSet<FlowSpecRule>, update: &rustbgpd_wire::UpdateMessage) {
    for attribute in update.parse(true, false, &[]).unwrap().attributes {
        match attribute {
            PathAttribute::MpReachNlri(reach) => table.extend(reach.flowspec_announced),
            PathAttribute::MpUnreachNlri(unreach) => {
                for rule in unreach.flowspec_withdrawn {
                    assert!(table.remove(&rule), "withdrew a rule that was not announced: {rule}");
                }
            }
            _ => {}
        }
    }
}

#[test]
fn the_open_message_has_flowspec_and_no_graceful_restart() {
    let listener = listener();
    let _flowspec = started(&listener);
    let Some(Message::Open(open)) = Peer::accept(&listener).next() else { panic!("OPEN") };
    assert_eq!((open.four_byte_as(), open.hold_time), (64_501, 90));
    assert_eq!(open.bgp_identifier, Ipv4Addr::LOCALHOST);
    let families: Vec<(Afi, Safi)> = open
        .capabilities
        .iter()
        .filter_map(|capability| match capability {
            Capability::MultiProtocol { afi, safi } => Some((*afi, *safi)),
            _ => None,
        })
        .collect();
    assert_eq!(families, [(Afi::Ipv4, Safi::FlowSpec), (Afi::Ipv6, Safi::FlowSpec)]);
    let is_graceful = |capability: &Capability| {
        matches!(capability, Capability::GracefulRestart { .. } | Capability::LongLivedGracefulRestart(_))
    };
    assert!(!open.capabilities.iter().any(is_graceful));
}

#[test]
fn a_stop_ends_the_session_as_an_administrator_does() {
    let listener = listener();
    let mut flowspec = started(&listener);
    let mut peer = Peer::established(&listener);
    wait_until_established(&mut flowspec);
    flowspec.stop().unwrap();
    assert_eq!(peer.notification(), (NotificationCode::Cease, 2));
    assert_eq!(peer.next(), None);
    let refused = redirect(&mut flowspec, 1, flow(1));
    assert!(matches!(refused, Some(Input::Failed(RedirectionId(1), error)) if error == "not started"));
}

#[test]
fn a_session_without_a_hold_time_is_refused() {
    let listener = listener();
    let mut flowspec = started(&listener);
    let mut peer = Peer::accept(&listener);
    peer.send(&Message::Open(open(0)));
    assert_eq!(peer.notification(), (NotificationCode::OpenMessage, 6));
    wait_for_error(&mut flowspec, "hold time 0 s refused: 2/6, Unacceptable Hold Time");
}

#[test]
fn bytes_that_are_no_bgp_end_the_session() {
    let listener = listener();
    let mut flowspec = started(&listener);
    let mut peer = Peer::established(&listener);
    wait_until_established(&mut flowspec);
    peer.stream.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n").unwrap();
    assert_eq!(peer.notification(), (NotificationCode::MessageHeader, 1));
    wait_for_error(&mut flowspec, "the peer sent an invalid message: ");
    // The next session starts with the rules in force, which are none.
    drop(peer);
    let _peer = Peer::established(&listener);
    wait_until_established(&mut flowspec);
    assert_eq!(flowspec.counters().repairs, 0);
}

#[test]
fn a_peer_that_reads_nothing_loses_no_answer() {
    const FLOWS: u64 = 20_000;
    let listener = listener();
    let mut flowspec = started(&listener);
    let peer = Peer::established(&listener);
    wait_until_established(&mut flowspec);
    let mut refused = 0;
    for id in 1..=FLOWS {
        while let Some(answer) = redirect(&mut flowspec, id, flow(id as u16)) {
            let Input::Failed(_, error) = answer else { panic!("{answer:?}") };
            assert_eq!(error, "too many changes are waiting");
            refused += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    drop(peer);
    let mut ids: Vec<u64> = answers(&mut flowspec, FLOWS as usize)
        .into_iter()
        .map(|answer| match answer {
            Input::Redirected(id) | Input::Failed(id, _) => id.0,
            other => panic!("{other:?}"),
        })
        .collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq(1..=FLOWS));
    assert_eq!(flowspec.counters().calls, FLOWS + refused);
}

/// Opens a session and its peer on one thread, where time passes as the test says.
fn session_and_peer(now: Instant) -> (BgpSession, Peer) {
    let listener = listener();
    let address = listener.local_addr().unwrap();
    let session = BgpSession::open(&options(address), TcpStream::connect(address).unwrap(), now);
    (session, Peer::accept(&listener))
}

#[test]
fn a_peer_that_sends_no_open_message_is_given_up_after_four_minutes() {
    let now = Instant::now();
    let (mut session, mut peer) = session_and_peer(now);
    session.advance(now + Duration::from_secs(239));
    assert_eq!(session.ended(), None);
    session.advance(now + Duration::from_secs(240));
    assert_eq!(session.ended(), Some("the peer was silent for the hold time"));
    assert_eq!(peer.notification(), (NotificationCode::HoldTimerExpired, 0));
}

#[test]
fn keepalive_messages_are_sent_at_a_third_of_the_hold_time() {
    let now = Instant::now();
    let (mut session, mut peer) = session_and_peer(now);
    session.receive(Incoming::Message(Message::Open(open(9))), now);
    session.receive(Incoming::Message(Message::Keepalive), now);
    assert!(session.take_established() && session.accepts(Afi::Ipv6));
    assert!(matches!(peer.next(), Some(Message::Open(_))));
    assert_eq!(peer.next(), Some(Message::Keepalive));
    let after = |seconds| now + Duration::from_secs(seconds);
    assert_eq!(session.deadline(), Some(after(3)));
    for seconds in [3, 6] {
        session.advance(after(seconds));
        assert_eq!(peer.next(), Some(Message::Keepalive));
    }
    // The peer is silent since 0 s.
    session.advance(after(9));
    assert_eq!(session.ended(), Some("the peer was silent for the hold time"));
    assert!(!session.accepts(Afi::Ipv4));
}

#[test]
fn a_peer_that_reads_nothing_for_long_is_given_up() {
    let now = Instant::now();
    let (mut session, _peer) = session_and_peer(now);
    session.receive(Incoming::Message(Message::Open(open(90))), now);
    session.receive(Incoming::Message(Message::Keepalive), now);
    let rules: Vec<rule::Rule> = (0..60_000).map(|port| rule::Rule::of(&flow(port))).collect();
    while session.queued() - session.written() < 100_000 {
        let updates = rule::announce(&rules, Afi::Ipv4, Action::Mark(1), session.encoding()).unwrap();
        updates.into_iter().for_each(|update| session.update(update));
        session.flush(now);
    }
    let mut last = now;
    // The peer sends, so the hold timer does not expire.
    for seconds in (60..480).step_by(60) {
        last = now + Duration::from_secs(seconds);
        session.receive(Incoming::Message(Message::Keepalive), last);
        session.advance(last);
    }
    assert_eq!(session.ended(), None);
    session.advance(last + Duration::from_secs(60));
    assert_eq!(session.ended(), Some("the peer has read nothing for 480 s"));
}

proptest! {
    /// A message with any type and body ends the session, or does not. Nothing panics, and a session that has ended says why.
    #[test]
    fn any_message_is_handled(kind in 0..8_u8, body in prop::collection::vec(any::<u8>(), 0..60), is_established: bool) {
        let now = Instant::now();
        let (mut session, _peer) = session_and_peer(now);
        if is_established {
            session.receive(Incoming::Message(Message::Open(open(90))), now);
            session.receive(Incoming::Message(Message::Keepalive), now);
        }
        let length = (19 + body.len()) as u16;
        let bytes = [&[0xFF; 16][..], &length.to_be_bytes(), &[kind], &body].concat();
        session.receive(match decode_message(&mut bytes.into(), MAX_MESSAGE_LEN) {
            Ok(message) => Incoming::Message(message),
            Err(error) => Incoming::Malformed(error),
        }, now);
        session.advance(now);
        prop_assert!(session.ended() != Some(""));
        prop_assert!(session.ended().is_none() || !session.is_established());
    }
}

/// A redirection or a release of one of a few flows.
fn steps() -> impl Strategy<Value = Vec<(bool, usize)>> {
    prop::collection::vec((prop::bool::weighted(0.6), 0..6_usize), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Whatever happens, the peer has the rules of the flows that are redirected, and no others: those of the flows that were
    /// redirected when the session was reset come back.
    #[test]
    fn the_peer_has_the_rules_in_force(before in steps(), after in steps()) {
        let flows: [FlowKey; 6] = [
            "tcp 192.0.2.7:1 > 198.51.100.9:443",
            "tcp 192.0.2.7:2 > 198.51.100.9:443",
            "udp [2001:db8::1]:1 > [2001:db8::2]:443",
            "udp [2001:db8::1]:2 > [2001:db8::2]:443",
            // These have the same rule.
            "sctp 192.0.2.7:1 > 198.51.100.9:443",
            "sctp 192.0.2.7:2 > 198.51.100.9:443",
        ]
        .map(|text| text.parse().unwrap());
        let listener = listener();
        let mut flowspec = started(&listener);
        let mut in_force = [None; 6];
        let mut id = 0;
        for steps in [before, after] {
            let mut peer = Peer::established(&listener);
            wait_until_established(&mut flowspec);
            for (is_redirection, index) in steps {
                id += 1;
                let key = flows[index];
                let command = match (is_redirection, in_force[index]) {
                    (true, None) => {
                        in_force[index] = Some(id);
                        Command::Redirect(RedirectionId(id), key)
                    }
                    (false, Some(id)) => {
                        in_force[index] = None;
                        Command::Release { id: RedirectionId(id), key, if_packets: None }
                    }
                    _ => continue,
                };
                prop_assert!(flowspec.execute(command, NOW).is_none());
                let answers = answers(&mut flowspec, 1);
                prop_assert!(matches!(answers[0], Input::Redirected(_) | Input::Released(_)), "{answers:?}");
            }
            // A rule that ends the list.
            id += 1;
            let last = flow(9_999);
            prop_assert!(redirect(&mut flowspec, id, last).is_none());
            answers(&mut flowspec, 1);
            let expected: BTreeSet<FlowSpecRule> = (flows.iter().zip(&in_force))
                .filter(|(_, id)| id.is_some())
                .map(|(key, _)| rule::Rule::of(key).components())
                .collect();
            let last_rule = rule::Rule::of(&last).components();
            let mut table = BTreeSet::new();
            while !table.contains(&last_rule) {
                if let Message::Update(update) = peer.next().expect("the session lasts") {
                    apply(&mut table, &update);
                }
            }
            table.remove(&last_rule);
            prop_assert_eq!(table, expected);
            let release = Command::Release { id: RedirectionId(id), key: last, if_packets: None };
            flowspec.execute(release, NOW);
            answers(&mut flowspec, 1);
            // The peer ends the session.
            peer.send(&Message::Notification(NotificationMessage::new(NotificationCode::Cease, 4, Default::default())));
            wait_for_error(&mut flowspec, "6/4, Administrative Reset");
        }
    }
}
