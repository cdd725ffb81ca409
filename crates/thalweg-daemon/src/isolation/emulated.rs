//! Isolation in the emulated network of `[emulate]`: its routers put the packets of redirected flows into scavenger queues.
//!
//! The thread of the emulation carries out commands between two timeslots, and answers them in order. Readings arrive as answers
//! too, so a reading from before a redirection is never taken for one from after it.
//!
//! When the emulation ends, its packets are gone: nothing is queued, and each flow can be released.

use std::collections::BTreeMap;

use crossbeam_channel::{Receiver, Sender, unbounded};
use thalweg_actuators::isolation::{Isolator, IsolatorCounters};
use thalweg_control::isolate::message::{FlowCounters, QueueReading};
use thalweg_control::isolate::{Command, Input, Reading, RedirectionId};
use thalweg_wire::{Bytes, FlowKey, Timestamp};

use crate::emulation::{Emulation, EmulationCommand};

/// The error of commands that the emulation has no room for.
const QUEUE_FULL: &str = "the command queue of the emulation is full";

/// The error of redirections after the end.
const ENDED: &str = "the emulation has ended";

/// Redirects flows of the daemon's emulation.
pub(super) struct Emulated {
    emulation: Emulation,
    /// At most one answer for each command, of which the emulation has a bounded number.
    answers: Receiver<Input>,
    answer_sender: Sender<Input>,
    /// Commands without an answer.
    unanswered: BTreeMap<RedirectionId, Unanswered>,
    is_reading: bool,
    /// The redirected flows, with their counters at the last reading.
    flows: BTreeMap<FlowKey, FlowCounters>,
    /// The scavenger and the primary queue at the last reading.
    queues: (QueueReading, QueueReading),
}

/// A command without an answer.
struct Unanswered {
    key: FlowKey,
    /// The answer if the emulation ends before.
    at_end: Input,
}

impl Emulated {
    /// Creates an isolator. Nothing is redirected before the emulation has started.
    pub(super) fn new(emulation: Emulation) -> Emulated {
        let (answer_sender, answers) = unbounded();
        Emulated {
            emulation,
            answers,
            answer_sender,
            unanswered: BTreeMap::new(),
            is_reading: false,
            flows: BTreeMap::new(),
            queues: Default::default(),
        }
    }

    /// Notes what an answer says about flows.
    fn note(&mut self, answer: &Input) {
        match answer {
            Input::Redirected(id) => {
                if let Some(Unanswered { key, .. }) = self.unanswered.remove(id) {
                    self.flows.entry(key).or_default();
                }
            }
            Input::Released(id) => {
                if let Some(Unanswered { key, .. }) = self.unanswered.remove(id) {
                    self.flows.remove(&key);
                }
            }
            Input::Failed(id, _) | Input::StillSending(id) => drop(self.unanswered.remove(id)),
            Input::Reading(reading) => {
                self.is_reading = false;
                self.queues = (reading.scavenger, reading.primary);
                for (key, counters) in &reading.flows {
                    if let (Some(known), Some(counters)) = (self.flows.get_mut(key), counters) {
                        *known = *counters;
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the last reading of these flows, with empty queues.
    fn final_reading(&self, flows: &[FlowKey]) -> Reading {
        let empty = |queue| QueueReading { backlog: Some(Bytes(0)), ..queue };
        Reading {
            scavenger: empty(self.queues.0),
            primary: empty(self.queues.1),
            flows: flows.iter().map(|key| (*key, self.flows.get(key).copied())).collect(),
        }
    }
}

impl Isolator for Emulated {
    fn name(&self) -> &'static str {
        "emulated"
    }

    fn reads_counters(&self) -> bool {
        true
    }

    fn execute(&mut self, command: Command, _now: Timestamp) -> Option<Input> {
        let (id, key, at_end, if_full) = match &command {
            // Redirections do not expire.
            Command::Refresh(_) => return None,
            Command::Restore(..) => {
                // If there is no room, the next reading shows again that it is missing.
                let _ = self.emulation.send(EmulationCommand::Isolate(command, self.answer_sender.clone()));
                return None;
            }
            &Command::Redirect(id, key) => {
                let failed = |error: &str| Input::Failed(id, error.to_owned());
                (id, key, failed(ENDED), failed(QUEUE_FULL))
            }
            &Command::Release { id, key, .. } => {
                (id, key, Input::Released(id), Input::ReleaseFailed(id, QUEUE_FULL.to_owned()))
            }
        };
        if self.emulation.is_over() {
            if let Command::Release { key, .. } = &command {
                self.flows.remove(key);
            }
            return Some(at_end);
        }
        match self.emulation.send(EmulationCommand::Isolate(command, self.answer_sender.clone())) {
            Ok(()) => {
                self.unanswered.insert(id, Unanswered { key, at_end });
                None
            }
            Err(_) => Some(if_full),
        }
    }

    fn answers(&mut self) -> Vec<Input> {
        // Read before the answers, so that the last ones are not missed.
        let is_over = self.emulation.is_over();
        let mut answers: Vec<Input> = self.answers.try_iter().collect();
        answers.iter().for_each(|answer| self.note(answer));
        if is_over {
            let at_end: Vec<Input> =
                self.unanswered.values().map(|unanswered| unanswered.at_end.clone()).collect();
            at_end.iter().for_each(|answer| self.note(answer));
            answers.extend(at_end);
        }
        answers
    }

    /// Requests a reading, which arrives as an answer.
    fn read(&mut self, flows: &[FlowKey], _now: Timestamp) -> Result<Option<Reading>, String> {
        if self.emulation.is_over() {
            return Ok(Some(self.final_reading(flows)));
        }
        if !self.is_reading {
            let command = EmulationCommand::ReadQueues(flows.to_vec(), self.answer_sender.clone());
            self.emulation.send(command).map_err(|_| QUEUE_FULL.to_owned())?;
            self.is_reading = true;
        }
        Ok(None)
    }

    fn counters(&self) -> IsolatorCounters {
        IsolatorCounters {
            redirected_packets: self.emulation.redirected_packets(),
            ..IsolatorCounters::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use thalweg_emulator::schemes::list::Scheme;
    use thalweg_experiment::Experiment;
    use thalweg_measure::collector::MonitorPort;
    use thalweg_network::routing::flow_ports;
    use thalweg_wire::Protocol;

    use super::*;
    use crate::emulation::EmulationConfig;

    const NOW: Timestamp = Timestamp(0);

    /// An emulation in which h1 sends to h0 at half of the rate, for 20 ms.
    fn emulation() -> Emulation {
        let text = "duration = \"20ms\"\n[topology]\nshape = \"rack\"\nendpoints = 2\n[scheme]\nname = \"scavenger\"\n\
            [[workload]]\npattern = \"stride\"\nstride = 1\nsizes = \"forever\"\n[[mirror]]\nrouter = \"tor0\"\n";
        Emulation::new(&EmulationConfig {
            path: "e.toml".into(),
            experiment: Experiment::parse(text, "e.toml").unwrap(),
            scheme: Scheme::default_of("scavenger").unwrap(),
            pace: 0.02,
            ports: vec![(
                "tor0".into(),
                MonitorPort { rate: Default::default(), buffer: Default::default() },
            )],
        })
    }

    /// The key of flow 0, from h0 to h1.
    fn key() -> FlowKey {
        let (from, to) = flow_ports::ports(0);
        let address = |last: u8| std::net::IpAddr::from([10, 0, 0, last]);
        FlowKey::new(address(1), address(2), from, to, Protocol::TCP).unwrap()
    }

    fn release(id: u64, if_packets: Option<u64>) -> Command {
        Command::Release { id: RedirectionId(id), key: key(), if_packets }
    }

    /// Waits for the next answers.
    fn wait(isolator: &mut Emulated) -> Vec<Input> {
        let start = Instant::now();
        loop {
            match isolator.answers() {
                answers if answers.is_empty() => {
                    assert!(start.elapsed() < Duration::from_secs(60), "no answer");
                    std::thread::sleep(Duration::from_millis(1));
                }
                answers => return answers,
            }
        }
    }

    fn reading(isolator: &mut Emulated) -> Reading {
        match &wait(isolator)[..] {
            [Input::Reading(reading)] => reading.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_flow_is_redirected_read_and_released_while_it_sends() {
        let emulation = emulation();
        let mut isolator = Emulated::new(emulation.clone());
        let thread = emulation.start().unwrap();
        assert_eq!(isolator.execute(Command::Redirect(RedirectionId(1), key()), NOW).map(drop), None);
        assert!(matches!(wait(&mut isolator)[..], [Input::Redirected(RedirectionId(1))]));
        let mut packets = 0;
        while packets < 10 {
            assert_eq!(isolator.read(&[key()], NOW).unwrap(), None);
            assert_eq!(isolator.read(&[key()], NOW).unwrap(), None, "one request at a time");
            let reading = reading(&mut isolator);
            let [(flow, Some(counters))] = reading.flows[..] else { panic!("{reading:?}") };
            assert_eq!((flow, counters.first.is_some()), (key(), counters.packets > 0));
            assert!(reading.scavenger.sent_packets <= counters.packets, "{reading:?}");
            packets = counters.packets;
        }
        assert!(isolator.counters().redirected_packets >= 10);
        isolator.execute(release(1, Some(9)), NOW);
        assert!(matches!(wait(&mut isolator)[..], [Input::StillSending(RedirectionId(1))]));
        isolator.execute(release(1, None), NOW);
        assert!(matches!(wait(&mut isolator)[..], [Input::Released(RedirectionId(1))]));
        isolator.read(&[key()], NOW).unwrap();
        let reading = reading(&mut isolator);
        assert_eq!((reading.flows.clone(), reading.scavenger.dropped_packets), (vec![(key(), None)], 0));
        assert!(reading.scavenger.sent_packets >= 10 && reading.primary.sent_packets > 0, "{reading:?}");
        emulation.stop();
        thread.join().unwrap();
    }

    #[test]
    fn flows_that_the_network_cannot_have_are_refused() {
        let emulation = emulation();
        let mut isolator = Emulated::new(emulation.clone());
        let thread = emulation.start().unwrap();
        for (key, expected) in [
            (
                "tcp 192.0.2.1:32768 > 10.0.0.2:16384",
                "no host of the emulated network has the address 192.0.2.1",
            ),
            (
                "tcp 10.0.0.1:443 > 10.0.0.2:51000",
                "no flow of the emulated network has the ports 443 and 51000",
            ),
            ("udp 10.0.0.1:32768 > 10.0.0.2:16384", "the flow with these ports is not udp"),
            ("icmp 10.0.0.1:8 > 10.0.0.2:0", "the flow with these ports is not icmp"),
        ] {
            isolator.execute(Command::Redirect(RedirectionId(1), key.parse().unwrap()), NOW);
            let answers = wait(&mut isolator);
            let [Input::Failed(RedirectionId(1), error)] = &answers[..] else { panic!("{answers:?}") };
            assert!(error.contains(expected), "{error}");
        }
        isolator.execute(Command::Redirect(RedirectionId(2), key()), NOW);
        assert!(matches!(wait(&mut isolator)[..], [Input::Redirected(RedirectionId(2))]));
        // The ports of its acknowledgements, in the same direction.
        let twin = "tcp 10.0.0.1:16384 > 10.0.0.2:32768".parse().unwrap();
        isolator.execute(Command::Redirect(RedirectionId(3), twin), NOW);
        let answers = wait(&mut isolator);
        let [Input::Failed(RedirectionId(3), error)] = &answers[..] else { panic!("{answers:?}") };
        assert!(error.starts_with("the flow is already redirected as tcp 10.0.0.1:32768"), "{error}");
        emulation.stop();
        thread.join().unwrap();
    }

    #[test]
    fn at_the_end_nothing_is_queued_and_every_command_is_answered() {
        let emulation = emulation();
        let mut isolator = Emulated::new(emulation.clone());
        isolator.execute(Command::Redirect(RedirectionId(1), key()), NOW);
        let thread = emulation.start().unwrap();
        assert!(matches!(wait(&mut isolator)[..], [Input::Redirected(RedirectionId(1))]));
        emulation.stop();
        thread.join().unwrap();
        // The thread carries out none of these.
        let reading = isolator.read(&[key()], NOW).unwrap().unwrap();
        assert!(reading.flows[0].1.is_some());
        assert_eq!(reading.scavenger.backlog, Some(Bytes(0)));
        let failed = isolator.execute(Command::Redirect(RedirectionId(2), key()), NOW);
        assert!(matches!(failed, Some(Input::Failed(RedirectionId(2), error)) if error == ENDED));
        let released = isolator.execute(release(1, Some(7)), NOW);
        assert!(matches!(released, Some(Input::Released(RedirectionId(1)))));
        assert_eq!(isolator.read(&[key()], NOW).unwrap().unwrap().flows, [(key(), None)]);

        let stopped = self::emulation();
        let mut isolator = Emulated::new(stopped.clone());
        isolator.execute(Command::Redirect(RedirectionId(1), key()), NOW);
        isolator.execute(release(2, None), NOW);
        assert_eq!(isolator.read(&[], NOW).unwrap(), None);
        stopped.fail_to_start();
        let answers = isolator.answers();
        assert!(
            matches!(&answers[..], [Input::Failed(RedirectionId(1), error), Input::Released(RedirectionId(2))] if error == ENDED),
            "{answers:?}"
        );
        assert_eq!(isolator.answers().len(), 0);
    }
}
