//! The thread that reads sketches in the kernel, and sends their windows to the main thread as a worker does.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use thalweg_dataplane::reader::ReadWindow;
use thalweg_dataplane::{Counting, Reason};
use thalweg_measure::meter::intake::{IntakeCounters, Tally};
use thalweg_measure::tasks::{FlowBytes, Plan, WindowState, WindowTally};
use thalweg_wire::parse::Malformed;
use thalweg_wire::{Bytes, SourceCounters, Timestamp};

use super::VIEW_INTERVAL;
use crate::clock::Clock;
use crate::in_kernel::{InKernelTotals, states, tally};
use crate::message::{Done, InputView, Message, MeteringView, ReadingView, View, send_message};
use crate::reader::Limits;
use crate::survey::{LinkMtu, Survey};
use crate::tasks::PermitReceiver;

/// How often new keys are read.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Reads sketches in the kernel.
pub(crate) struct KernelWorker {
    counting: Counting<FlowBytes>,
    plan: Plan,
    permits: PermitReceiver,
    sender: Sender<Message>,
    clock: Clock,
    sends_views: bool,
    view: ReadingView,
    totals: InKernelTotals,
    /// The current window.
    index: u64,
    /// The packets that views have shown.
    shown: (u64, u64),
}

impl KernelWorker {
    pub(crate) fn new(
        counting: Counting<FlowBytes>,
        plan: Plan,
        permits: PermitReceiver,
        sender: Sender<Message>,
        clock: Clock,
        sends_views: bool,
    ) -> KernelWorker {
        let name = counting.attachment().interface().to_owned();
        let input = InputView {
            name,
            counters: SourceCounters::default(),
            survey: Survey::new(LinkMtu::Unknown),
            progress: None,
            is_down: false,
            ended: false,
            error: None,
        };
        let view = ReadingView { inputs: vec![input], ..ReadingView::default() };
        let totals = InKernelTotals::new(&counting);
        KernelWorker {
            counting,
            plan,
            permits,
            sender,
            clock,
            sends_views,
            view,
            totals,
            index: 0,
            shown: (0, 0),
        }
    }

    /// Reads until a limit is reached, the interface is removed, or the program is detached.
    pub(crate) fn run(mut self, limits: Limits<'_>) -> Done {
        // The plan has a worker for each CPU; one reader has the windows of all.
        for worker in 1..self.plan.options().workers {
            send_message(&self.sender, Message::NoMoreWindows(worker));
        }
        let (began, mut next_view) = (self.clock.now(), self.clock.now());
        let start = self.clock.time();
        let end = limits.duration.map(|duration| start + duration);
        self.index = self.index_of(start);
        self.view.span = Some((start, start));
        loop {
            let (now, steady) = (self.clock.time(), self.clock.now());
            self.counting.poll(self.clock.since(began).as_nanos() as u64);
            let ended = limits.stop.load(Ordering::Relaxed) || end.is_some_and(|end| now >= end);
            if steady >= next_view || ended {
                next_view = steady + VIEW_INTERVAL;
                self.check_attachment();
                self.send_view(now);
            }
            let is_cut = self.view.inputs[0].error.is_some();
            if ended || is_cut {
                break;
            }
            if self.index_of(now) > self.index {
                self.end_window(now, began);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        limits.stop.store(true, Ordering::Relaxed);
        let now = self.clock.time();
        self.end_window(now, began);
        send_message(&self.sender, Message::NoMoreWindows(0));
        self.view.inputs[0].ended = true;
        self.send_view(now);
        Done {
            reading: Some(self.view),
            counters: None,
            has_metered: true,
            largest: Vec::new(),
            groups: None,
            in_kernel: Some(self.totals),
        }
    }

    fn index_of(&self, time: Timestamp) -> u64 {
        time.0 / self.plan.options().window.0
    }

    fn check_attachment(&mut self) {
        let attachment = self.counting.attachment();
        if !attachment.is_attached() {
            let name = attachment.interface();
            let reason = format!("{name}: the interface was removed, or the program was detached");
            self.view.inputs[0].error = Some(reason);
        }
    }

    /// Sends the current window, and the stretch of windows without packets after it.
    fn end_window(&mut self, now: Timestamp, began: Instant) {
        let window = self.counting.end_window(self.clock.since(began).as_nanos() as u64);
        self.totals.add(&window);
        let tally = tally(&window);
        add_to_intake(&mut self.view.intake, &window, tally);
        self.view.span = self.view.span.map(|(first, _)| (first, now));
        let states = if tally.packets == 0 { Vec::new() } else { states(&self.plan, &window) };
        let mut finished = vec![WindowState { worker: 0, index: self.index, windows: 1, tally, states }];
        let next = self.index_of(now).max(self.index + 1);
        if next - self.index > 1 {
            let (index, windows, tally) = (next - 1, next - 1 - self.index, WindowTally::default());
            finished.push(WindowState { worker: 0, index, windows, tally, states: Vec::new() });
        }
        self.index = next;
        // If the main thread is exiting, do not wait.
        let _ = self.permits.recv();
        send_message(&self.sender, Message::Windows(finished));
    }

    fn send_view(&mut self, now: Timestamp) {
        if !self.sends_views {
            return;
        }
        let (packets, bytes) = self.counting.reader().frames();
        let (before_packets, before_bytes) = self.shown;
        let (packets, bytes) = (packets.max(before_packets), bytes.max(before_bytes));
        self.view.history.add(now, packets - before_packets, Bytes(bytes - before_bytes));
        self.shown = (packets, bytes);
        let metering = Some(MeteringView { now, ..MeteringView::default() });
        let view = View { worker: 0, reading: Some(self.view.clone()), metering };
        send_message(&self.sender, Message::View(Box::new(view)));
    }
}

/// Adds the frames of a window. Without a sketch that sees every packet, the numbers by reason are shares of the estimate.
fn add_to_intake(intake: &mut IntakeCounters, window: &ReadWindow<FlowBytes>, ip: WindowTally) {
    let totals = window.window.totals();
    *intake += IntakeCounters {
        frames: Tally { packets: totals.packets, bytes: Bytes(totals.bytes) },
        ip: Tally { packets: ip.packets, bytes: ip.bytes },
        portless_fragments: totals.fragments,
        ports_not_captured: totals.portless,
        length_beyond_frame: totals.beyond,
        ..IntakeCounters::default()
    };
    let keyless = totals.packets.saturating_sub(ip.packets);
    let parsed: u64 = Reason::ALL.iter().map(|&reason| totals.uncounted(reason)).sum();
    if parsed == 0 {
        return;
    }
    // One parsed packet stands for so many.
    let scaled = |number: u64| (u128::from(number) * u128::from(keyless) / u128::from(parsed)) as u64;
    let share = |reason| Tally {
        packets: scaled(totals.uncounted(reason)),
        bytes: Bytes(scaled(totals.uncounted_bytes(reason))),
    };
    let keyless_bytes = Reason::ALL.iter().map(|&reason| totals.uncounted_bytes(reason)).sum();
    let mut rest = Tally { packets: keyless, bytes: Bytes(scaled(keyless_bytes)) };
    for (kind, reason) in [
        (Malformed::Truncated, Reason::Truncated),
        (Malformed::FrameTooShort, Reason::TooShort),
        (Malformed::IpVersion, Reason::IpVersion),
        (Malformed::HeaderLength, Reason::HeaderLength),
        (Malformed::TotalLength, Reason::TotalLength),
    ] {
        let tally = share(reason);
        rest.packets -= tally.packets;
        rest.bytes = Bytes(rest.bytes.0 - tally.bytes.0);
        intake.malformed[kind.index()] += tally;
    }
    intake.non_ip += rest;
}
