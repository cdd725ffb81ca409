//! The reading side of a worker.

use std::sync::Arc;

use crossbeam_channel::Sender;
use thalweg_measure::meter::intake::{Intake, Taken};
use thalweg_wire::{Batch, Packet, Source, SourceCounters, Timestamp};

use super::PacketSink;
use crate::clock::Clock;
use crate::flow_capture::LiveCapture;
use crate::inputs::Input;
use crate::message::{Done, InputView, Message, ReadingView, View, send_message};
use crate::reader::{Consumer, Limits, Pace, read};
use crate::survey::{FlowContext, Survey};

/// The reading side of a worker.
#[derive(Debug)]
pub(crate) struct Reading {
    worker: usize,
    sender: Sender<Message>,
    intake: Intake,
    clock: Clock,
    frames: FrameObserver,
    view: ReadingView,
}

impl Reading {
    pub(crate) fn new(
        worker: usize,
        intake: Intake,
        frames: FrameObserver,
        sender: Sender<Message>,
        clock: Clock,
    ) -> Reading {
        Reading { worker, sender, intake, clock, frames, view: ReadingView::default() }
    }

    /// Reads the inputs one after another.
    pub(crate) fn run(
        mut self,
        inputs: Vec<Input>,
        mut pace: Option<Pace>,
        limits: Limits<'_>,
        sink: impl PacketSink,
    ) -> Done {
        self.view.inputs = inputs.iter().map(InputView::waiting).collect();
        let mut recorder = ViewRecorder { view: self.view, frames: self.frames, sink, input: 0 };
        let mut end = None;
        for (number, mut input) in inputs.into_iter().enumerate() {
            recorder.input = number;
            let (intake, clock) = (&mut self.intake, self.clock);
            let result = read(&mut input, intake, pace.as_mut(), limits, clock, &mut end, &mut recorder);
            let view = &mut recorder.view.inputs[number];
            view.counters = input.counters();
            view.ended = true;
            view.error = result.err().map(|error| error.to_string());
        }
        recorder.view.intake = self.intake.counters();
        recorder.view.span = self.intake.span();
        let mut done = recorder.sink.finish();
        done.reading = Some(recorder.view.clone());
        let view = View { worker: self.worker, reading: Some(recorder.view), metering: None };
        send_message(&self.sender, Message::View(Box::new(view)));
        done
    }
}

/// What looks at frames besides the parser; shared by all threads that read.
#[derive(Clone, Debug)]
pub(crate) struct FrameObserver {
    pub(crate) context: FlowContext,
    pub(crate) capture: Arc<LiveCapture>,
}

impl InputView {
    fn waiting(input: &Input) -> InputView {
        let (counters, progress) = (SourceCounters::default(), input.progress());
        let survey = Survey::new(input.mtu);
        InputView {
            name: input.name.clone(),
            counters,
            survey,
            progress,
            is_down: false,
            ended: false,
            error: None,
        }
    }
}

/// Records the state of reading and forwards packets.
struct ViewRecorder<T> {
    view: ReadingView,
    frames: FrameObserver,
    sink: T,
    input: usize,
}

impl<T: PacketSink> Consumer for ViewRecorder<T> {
    fn frames(&mut self, batch: &Batch<'_>) {
        self.view.inputs[self.input].survey.look(batch);
        self.frames.capture.frames(batch);
    }

    fn packets(&mut self, packets: &[Packet], taken: Taken) {
        if let Some(last) = packets.last() {
            self.frames.context.add(taken.tags, taken.has_decapsulated);
            self.view.history.add(last.time, taken.packets.packets, taken.packets.bytes);
            self.sink.packets(packets);
        }
    }

    fn pause(&mut self, input: &mut Input, intake: &Intake, now: Timestamp) {
        let view = &mut self.view.inputs[self.input];
        view.counters = input.counters();
        view.progress = input.progress();
        view.is_down = input.is_down();
        self.tick(intake, now);
    }

    fn tick(&mut self, intake: &Intake, now: Timestamp) {
        self.view.intake = intake.counters();
        self.view.span = intake.span();
        self.view.history.advance(now);
        self.sink.advance(now, &self.view);
    }
}
