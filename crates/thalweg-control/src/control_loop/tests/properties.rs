//! Properties that hold for any sequence of inputs.

use super::*;

/// One step of a random sequence.
#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Collision(u32, Vec<(u16, u16, u8, u64)>),
    Seen(u16, u16, u8),
    Report(u16, u16, u8, u8),
    Pin(u16, u16, u8),
    Unpin(u16, u16),
    Freeze(bool),
    Flows(Vec<(u16, u16, u8, u64)>),
    Link(u16, bool),
    Tables(u8),
    Connected(u16),
    /// How the driver answers later commands: starts, refuses, or does not answer.
    Answers(u8),
}

fn any_step() -> impl Strategy<Value = Step> {
    let host = || 0u16..16;
    let flow = || (host(), host(), 0u8..4, 1u64..LINE);
    prop_oneof![
        3 => (1u64..30).prop_map(Step::Wait),
        4 => (0u32..80, prop::collection::vec(flow(), 1..4)).prop_map(|(link, flows)| Step::Collision(link, flows)),
        2 => (host(), host(), 0u8..4).prop_map(|(a, b, address)| Step::Seen(a, b, address)),
        2 => (host(), host(), 0u8..4, 0u8..3).prop_map(|(a, b, address, kind)| Step::Report(a, b, address, kind)),
        1 => (host(), host(), 0u8..4).prop_map(|(a, b, address)| Step::Pin(a, b, address)),
        1 => (host(), host()).prop_map(|(a, b)| Step::Unpin(a, b)),
        1 => any::<bool>().prop_map(Step::Freeze),
        1 => prop::collection::vec(flow(), 0..6).prop_map(Step::Flows),
        1 => (0u16..40, any::<bool>()).prop_map(|(link, is_up)| Step::Link(link, is_up)),
        1 => (0u8..4).prop_map(Step::Tables),
        1 => (0u16..20).prop_map(Step::Connected),
        1 => (0u8..3).prop_map(Step::Answers),
    ]
}

/// A loop with a driver that answers as the steps say.
struct Driven {
    control: ControlLoop,
    now: u64,
    answers: u8,
    commanded: Vec<Command>,
}

impl Driven {
    fn new(options: ControlOptions) -> Driven {
        Driven { control: new_loop(options), now: 1, answers: 0, commanded: Vec::new() }
    }

    fn handle(&mut self, input: Input) {
        self.control.handle(at(self.now), input);
        while let Some(command) = self.control.next_command() {
            self.commanded.push(command.clone());
            let answer = match (command, self.answers) {
                (Command::Reroute(action), 0) => Input::Started(action.id),
                (Command::Reroute(action), 1) => Input::Refused(action.id, "no".to_owned()),
                (Command::Announce { ahead, .. }, 0) => Input::Announced(at(self.now) + ahead),
                (Command::Announce { .. }, 1) => Input::AnnounceFailed("no".to_owned()),
                (Command::Install(_), 0) => Input::Installed,
                (Command::RepairRules(_), 0) => Input::RulesRepaired,
                (Command::RepairRules(_), 1) => Input::RuleRepairFailed("no".to_owned()),
                (Command::PollFlows, _) => Input::Flows(Vec::new()),
                _ => continue,
            };
            self.control.handle(at(self.now), answer);
        }
    }

    fn step(&mut self, step: &Step) {
        let flows = |flows: &[(u16, u16, u8, u64)]| -> Vec<(Pair, u8, u64)> {
            let flows = flows.iter().filter(|flow| flow.0 != flow.1);
            flows.map(|&(a, b, address, rate)| (pair(a, b), address, rate)).collect()
        };
        let input = match step {
            Step::Wait(ms) => {
                self.now += ms;
                Input::Tick
            }
            Step::Collision(link, on_it) => congestion_event(LinkNumber(*link), at(self.now), &flows(on_it)),
            Step::Seen(a, b, _) | Step::Report(a, b, ..) | Step::Pin(a, b, _) | Step::Unpin(a, b)
                if a == b =>
            {
                Input::Tick
            }
            Step::Seen(a, b, address) => {
                let (id, issued) = (crate::action::ActionId(0), at(self.now));
                let (pair, address) = (pair(*a, *b), *address);
                address_change(&Action { id, pair, address, issued, deadline: issued }, self.now)
            }
            Step::Report(a, b, address, kind) => {
                let time = at(self.now);
                let progress = [
                    Progress::Awaiting { since: Timestamp(time.0 / 2) },
                    Progress::Departed { first: time, packets: 3 },
                    Progress::Arrived,
                ][usize::from(*kind)];
                let ethernet = addresses(&network(), pair(*a, *b), *address);
                Input::Arrival(ArrivalReport { ethernet, progress, time })
            }
            Step::Pin(a, b, address) => Input::Pin { pair: pair(*a, *b), address: *address },
            Step::Unpin(a, b) => Input::Unpin(pair(*a, *b)),
            Step::Freeze(is_frozen) => Input::Freeze(*is_frozen),
            Step::Flows(all) => {
                let observed = flows(all).into_iter();
                let measured = at(self.now);
                let observed = observed.map(|(pair, address, rate)| PairRate {
                    pair,
                    address,
                    rate: BitRate(rate),
                    measured,
                    flows: Vec::new(),
                });
                Input::Flows(observed.collect())
            }
            Step::Link(link, is_up) => Input::LinkChanged { link: LinkId(u32::from(*link)), is_up: *is_up },
            Step::Tables(kept) => {
                // Some of the rules are missing.
                let mut rules = wanted(&self.control);
                let gone: Vec<_> = rules.iter().skip(usize::from(*kept) * 100).collect();
                for (router, address, _) in gone {
                    rules.apply(&crate::routes::Change { router, address, rule: None });
                }
                Input::Tables { router: None, rules }
            }
            Step::Connected(router) => Input::SwitchConnected(RouterId(*router)),
            Step::Answers(how) => {
                self.answers = *how;
                Input::Tick
            }
        };
        self.handle(input);
    }
}

fn any_options() -> impl Strategy<Value = ControlOptions> {
    let interval = Some(Nanos::from_millis(20));
    let installation = prop_oneof![
        Just(Installation::Never),
        Just(Installation::Tables),
        Just(Installation::Reconcile { interval })
    ];
    (installation, 1usize..8).prop_map(|(installation, pending)| {
        let controller = ControllerOptions { pending, history: 10, ..ControllerOptions::default() };
        ControlOptions { controller, ..installing(installation) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_same_inputs_give_the_same_commands(
        options in any_options(),
        steps in prop::collection::vec(any_step(), 0..60),
    ) {
        let run = || {
            let mut driven = Driven::new(options);
            steps.iter().for_each(|step| driven.step(step));
            let records = format!("{:?}", driven.control.take_records());
            (format!("{:?}", driven.commanded), records, driven.control.controller().counters())
        };
        prop_assert_eq!(run(), run());
    }

    /// Holds for any inputs, even if the driver takes no commands, reports no results and takes no records.
    #[test]
    fn memory_is_bounded(
        options in any_options(),
        steps in prop::collection::vec(any_step(), 0..80),
        takes_commands in any::<bool>(),
    ) {
        let mut driven = Driven::new(options);
        for step in steps.iter().cycle().take(steps.len() * 3) {
            if takes_commands {
                driven.step(step);
                driven.commanded.clear();
            } else if let Step::Pin(a, b, address) = step && a != b {
                let pair = pair(*a, *b);
                driven.now += 60;
                driven.control.handle(at(driven.now), Input::Pin { pair, address: *address });
                driven.control.handle(at(driven.now), Input::Tick);
            }
        }
        let pending = options.controller.pending;
        prop_assert!(driven.control.arrivals.len() <= pending);
        prop_assert!(driven.control.commands.len() <= 8, "{:?}", driven.control.commands.len());
        let records = driven.control.take_records();
        // Started, refused and finished actions are bounded separately.
        prop_assert!(records.actions.len() <= 3 * pending && records.broken_paths.len() <= pending);
        prop_assert!(records.decisions.len() <= 10);
        prop_assert!(driven.control.actions().count() <= 10);
    }

    #[test]
    fn a_frozen_loop_does_not_change_forwarding(
        installation in prop_oneof![Just(Installation::Never), Just(Installation::Reconcile { interval: Some(Nanos::from_millis(20)) })],
        steps in prop::collection::vec(any_step(), 0..60),
    ) {
        let mut driven = Driven::new(installing(installation));
        driven.handle(Input::Freeze(true));
        driven.commanded.clear();
        for step in &steps {
            // Pins and the end of the freeze may change forwarding.
            if !matches!(step, Step::Pin(..) | Step::Freeze(false)) {
                driven.step(step);
            }
        }
        let harmless = |command: &Command| matches!(
            command,
            Command::Hold { .. } | Command::PollFlows | Command::ReadBack { .. } | Command::Observe { .. }
        );
        prop_assert!(driven.commanded.iter().all(harmless), "{:?}", driven.commanded);
    }
}
