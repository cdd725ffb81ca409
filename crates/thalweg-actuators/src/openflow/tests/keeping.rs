//! A switch that keeps flow entries, in memory.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use thalweg_wire::openflow::multipart::{FlowStats, MultipartReply, MultipartRequest, Reply, Request};
use thalweg_wire::openflow::{
    Body, DatapathId, ErrorMessage, ErrorType, FlowFlags, FlowMod, FlowModCommand, Message,
};

use super::played::{Played, features};

/// What a switch keeps beyond its connections.
#[derive(Clone, Default)]
pub(super) struct Table {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    flows: Vec<FlowStats>,
    /// Flow-mods that it was sent, refused ones too.
    mods: usize,
    /// How many of the next flow-mods are refused, and not carried out.
    refused: usize,
}

/// A switch that is connected, until it is dropped.
pub(super) struct Keeping {
    stream: TcpStream,
    thread: Option<JoinHandle<()>>,
}

impl Table {
    pub(super) fn flows(&self) -> Vec<FlowStats> {
        self.kept.lock().unwrap().flows.clone()
    }

    /// Somebody else changes the table.
    pub(super) fn change(&self, change: impl FnOnce(&mut Vec<FlowStats>)) {
        change(&mut self.kept.lock().unwrap().flows);
    }

    /// How many flow-mods have come since this was last asked.
    pub(super) fn take_mods(&self) -> usize {
        std::mem::take(&mut self.kept.lock().unwrap().mods)
    }

    pub(super) fn refuse(&self, count: usize) {
        self.kept.lock().unwrap().refused = count;
    }

    /// Connects a switch with this table.
    pub(super) fn connect(&self, address: SocketAddr, datapath: DatapathId) -> Keeping {
        let stream = TcpStream::connect(address).unwrap();
        let (table, mut played) = (self.clone(), Played::new(Box::new(stream.try_clone().unwrap())));
        let thread = std::thread::spawn(move || {
            played.hello();
            while let Some(message) = played.try_hear() {
                table.answer(&mut played, message, datapath);
            }
        });
        Keeping { stream, thread: Some(thread) }
    }

    fn answer(&self, played: &mut Played, Message { xid, body }: Message, datapath: DatapathId) {
        let reply = |reply| Body::MultipartReply(MultipartReply { more: false, reply });
        let answer = match body {
            Body::FeaturesRequest => Body::FeaturesReply(features(datapath)),
            Body::BarrierRequest => Body::BarrierReply,
            Body::EchoRequest(data) => Body::EchoReply(data),
            Body::MultipartRequest(MultipartRequest { request, .. }) => match request {
                Request::PortDesc => reply(Reply::PortDesc(Vec::new())),
                Request::GroupDesc => reply(Reply::GroupDesc(Vec::new())),
                Request::Flow(filter) => {
                    let agrees = |flow: &FlowStats| (flow.cookie ^ filter.cookie) & filter.cookie_mask == 0;
                    reply(Reply::Flow(self.flows().into_iter().filter(agrees).collect()))
                }
                other => panic!("{other:?}"),
            },
            Body::FlowMod(flow) => match self.carry_out(flow) {
                Ok(()) => return,
                Err(error) => Body::Error(error),
            },
            Body::SetConfig(_) => return,
            other => panic!("{other:?}"),
        };
        played.say(xid, answer);
    }

    fn carry_out(&self, flow: FlowMod) -> Result<(), ErrorMessage> {
        let mut kept = self.kept.lock().unwrap();
        kept.mods += 1;
        if kept.refused > 0 {
            kept.refused -= 1;
            return Err(ErrorMessage { error_type: ErrorType::FLOW_MOD_FAILED, code: 1, data: vec![] });
        }
        let sorted = flow.matching.clone().sorted();
        let is_other =
            |kept: &FlowStats| kept.priority != flow.priority || kept.matching.clone().sorted() != sorted;
        kept.flows.retain(is_other);
        match flow.command {
            FlowModCommand::ADD => kept.flows.push(stats(flow)),
            FlowModCommand::DELETE_STRICT => {}
            other => panic!("{other:?}"),
        }
        Ok(())
    }
}

fn stats(flow: FlowMod) -> FlowStats {
    FlowStats {
        table_id: flow.table_id,
        duration_sec: 0,
        duration_nsec: 0,
        priority: flow.priority,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        flags: FlowFlags::default(),
        cookie: flow.cookie,
        packet_count: 0,
        byte_count: 0,
        matching: flow.matching.sorted(),
        instructions: flow.instructions,
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        // One that panicked has said so itself.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
