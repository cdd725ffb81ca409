//! A switch with a flow table in memory.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use thalweg_wire::openflow::multipart::{FlowStats, MultipartReply, MultipartRequest, Reply, Request};
use thalweg_wire::openflow::{Body, DatapathId, ErrorMessage, ErrorType, FlowMod, FlowModCommand, Message};

use super::scripted_switch::{ScriptedSwitch, features};

/// The flow table, which outlives connections.
#[derive(Clone, Default)]
pub(super) struct Table {
    contents: Arc<Mutex<Contents>>,
}

#[derive(Default)]
struct Contents {
    flows: Vec<FlowStats>,
    /// Flow-mods received, refused ones included.
    mods: usize,
    /// Number of upcoming flow-mods to refuse.
    refused: usize,
}

/// A connected switch; disconnects on drop.
pub(super) struct TableSwitch {
    stream: TcpStream,
    thread: Option<JoinHandle<()>>,
}

impl Table {
    pub(super) fn flows(&self) -> Vec<FlowStats> {
        self.contents.lock().unwrap().flows.clone()
    }

    /// Changes the table from outside.
    pub(super) fn change(&self, change: impl FnOnce(&mut Vec<FlowStats>)) {
        change(&mut self.contents.lock().unwrap().flows);
    }

    /// Returns the number of flow-mods since the last call.
    pub(super) fn take_mods(&self) -> usize {
        std::mem::take(&mut self.contents.lock().unwrap().mods)
    }

    pub(super) fn refuse(&self, count: usize) {
        self.contents.lock().unwrap().refused = count;
    }

    /// Connects a switch with this table.
    pub(super) fn connect(&self, address: SocketAddr, datapath: DatapathId) -> TableSwitch {
        let stream = TcpStream::connect(address).unwrap();
        let (table, mut peer) = (self.clone(), ScriptedSwitch::new(Box::new(stream.try_clone().unwrap())));
        let thread = std::thread::spawn(move || {
            peer.hello();
            while let Some(message) = peer.try_receive() {
                table.answer(&mut peer, message, datapath);
            }
        });
        TableSwitch { stream, thread: Some(thread) }
    }

    fn answer(&self, peer: &mut ScriptedSwitch, Message { xid, body }: Message, datapath: DatapathId) {
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
        peer.send(xid, answer);
    }

    fn carry_out(&self, flow: FlowMod) -> Result<(), ErrorMessage> {
        let mut contents = self.contents.lock().unwrap();
        contents.mods += 1;
        if contents.refused > 0 {
            contents.refused -= 1;
            return Err(ErrorMessage { error_type: ErrorType::FLOW_MOD_FAILED, code: 1, data: vec![] });
        }
        let sorted = flow.matching.clone().sorted();
        let is_other = |contents: &FlowStats| {
            contents.priority != flow.priority || contents.matching.clone().sorted() != sorted
        };
        contents.flows.retain(is_other);
        match flow.command {
            FlowModCommand::ADD => contents.flows.push(stats(flow)),
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
        flags: flow.flags,
        cookie: flow.cookie,
        packet_count: 0,
        byte_count: 0,
        matching: flow.matching.sorted(),
        instructions: flow.instructions,
    }
}

impl Drop for TableSwitch {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        // A panicked thread has already reported its panic.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
