//! A switch with a flow table in memory.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use thalweg_wire::openflow::multipart::{
    FlowStats, MultipartReply, MultipartRequest, QueueStats, Reply, Request,
};
use thalweg_wire::openflow::{
    Body, DatapathId, ErrorMessage, ErrorType, FlowMod, FlowModCommand, Message, Port, Role, RoleRequest, Xid,
};

use thalweg_openflow::scripted_switch::{ScriptedSwitch, features};

/// The flow table, which outlives connections.
#[derive(Clone, Default)]
pub(crate) struct Table {
    contents: Arc<Mutex<Contents>>,
}

#[derive(Default)]
struct Contents {
    flows: Vec<FlowStats>,
    ports: Vec<Port>,
    queues: Vec<QueueStats>,
    /// Flow-mods received, refused ones included.
    mods: usize,
    /// Number of upcoming flow-mods to refuse.
    refused: usize,
    /// Connections so far.
    connections: usize,
    /// The connection of the master.
    master: Option<usize>,
    /// The latest generation id.
    generation: Option<u64>,
}

/// A connected switch; disconnects on drop.
pub(crate) struct TableSwitch {
    stream: TcpStream,
    thread: Option<JoinHandle<()>>,
}

impl Table {
    pub(crate) fn flows(&self) -> Vec<FlowStats> {
        self.contents.lock().unwrap().flows.clone()
    }

    /// Changes the table from outside.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Vec<FlowStats>)) {
        change(&mut self.contents.lock().unwrap().flows);
    }

    /// Sets ports and queues from outside.
    pub(crate) fn set_ports(&self, ports: Vec<Port>, queues: Vec<QueueStats>) {
        let mut contents = self.contents.lock().unwrap();
        (contents.ports, contents.queues) = (ports, queues);
    }

    /// Lets a controller elsewhere claim the role of master by this generation id.
    pub(crate) fn claim(&self, generation: u64) {
        let mut contents = self.contents.lock().unwrap();
        (contents.master, contents.generation) = (Some(usize::MAX), Some(generation));
    }

    /// Returns the number of flow-mods since the last call.
    pub(crate) fn take_mods(&self) -> usize {
        std::mem::take(&mut self.contents.lock().unwrap().mods)
    }

    pub(crate) fn refuse(&self, count: usize) {
        self.contents.lock().unwrap().refused = count;
    }

    /// Connects a switch with this table.
    pub(crate) fn connect(&self, address: SocketAddr, datapath: DatapathId) -> TableSwitch {
        let stream = TcpStream::connect(address).unwrap();
        let (table, mut peer) = (self.clone(), ScriptedSwitch::new(Box::new(stream.try_clone().unwrap())));
        let thread = std::thread::spawn(move || {
            peer.hello();
            let connection = table.next_connection();
            while let Some(message) = peer.try_receive() {
                table.answer(&mut peer, message, datapath, connection);
            }
        });
        TableSwitch { stream, thread: Some(thread) }
    }

    fn next_connection(&self) -> usize {
        let mut contents = self.contents.lock().unwrap();
        contents.connections += 1;
        contents.connections
    }

    /// Answers a role request as the specification demands (section 7.3.9).
    fn role(&self, request: RoleRequest, connection: usize) -> Body {
        let mut contents = self.contents.lock().unwrap();
        if request.role != Role::NO_CHANGE {
            let is_older = |latest: u64| (request.generation_id.wrapping_sub(latest) as i64) < 0;
            if contents.generation.is_some_and(is_older) {
                let error_type = ErrorType::ROLE_REQUEST_FAILED;
                return Body::Error(ErrorMessage { error_type, code: 0, data: vec![] });
            }
            contents.generation = Some(request.generation_id);
            match request.role {
                Role::MASTER => contents.master = Some(connection),
                _ if contents.master == Some(connection) => contents.master = None,
                _ => {}
            }
        }
        let role = match contents.master {
            Some(master) if master == connection => Role::MASTER,
            Some(_) => Role::SLAVE,
            None => Role::EQUAL,
        };
        Body::RoleReply(RoleRequest { role, generation_id: contents.generation.unwrap_or(u64::MAX) })
    }

    /// Returns whether another connection is that of the master. Then a switch refuses writes.
    fn is_slave(&self, connection: usize) -> bool {
        self.contents.lock().unwrap().master.is_some_and(|master| master != connection)
    }

    fn answer(
        &self,
        peer: &mut ScriptedSwitch,
        Message { xid, body }: Message,
        datapath: DatapathId,
        connection: usize,
    ) {
        let reply = |reply| Body::MultipartReply(MultipartReply { more: false, reply });
        let answer = match body {
            Body::FeaturesRequest => Body::FeaturesReply(features(datapath)),
            Body::BarrierRequest => Body::BarrierReply,
            Body::EchoRequest(data) => Body::EchoReply(data),
            Body::MultipartRequest(MultipartRequest { request, .. }) => match request {
                Request::PortDesc => reply(Reply::PortDesc(self.contents.lock().unwrap().ports.clone())),
                Request::Queue(_) => reply(Reply::Queue(self.contents.lock().unwrap().queues.clone())),
                Request::GroupDesc => reply(Reply::GroupDesc(Vec::new())),
                Request::Flow(filter) => {
                    let agrees = |flow: &FlowStats| (flow.cookie ^ filter.cookie) & filter.cookie_mask == 0;
                    reply(Reply::Flow(self.flows().into_iter().filter(agrees).collect()))
                }
                other => panic!("{other:?}"),
            },
            Body::RoleRequest(request) => self.role(request, connection),
            Body::FlowMod(_) if self.is_slave(connection) => {
                Body::Error(ErrorMessage { error_type: ErrorType::BAD_REQUEST, code: 10, data: vec![] })
            }
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
        let has_cookie = |found: &FlowStats| (found.cookie ^ flow.cookie) & flow.cookie_mask == 0;
        let is_same =
            |found: &FlowStats| found.priority == flow.priority && found.matching.clone().sorted() == sorted;
        match flow.command {
            FlowModCommand::ADD => {
                contents.flows.retain(|found| !is_same(found));
                contents.flows.push(stats(flow));
            }
            FlowModCommand::DELETE_STRICT => {
                contents.flows.retain(|found| !(is_same(found) && has_cookie(found)));
            }
            FlowModCommand::DELETE => contents.flows.retain(|found| !has_cookie(found)),
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

impl TableSwitch {
    /// Sends a message that answers nothing.
    pub(crate) fn send(&self, body: Body) {
        ScriptedSwitch::new(Box::new(self.stream.try_clone().unwrap())).send(Xid(0), body);
    }
}

impl Drop for TableSwitch {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        // A panicked thread has already reported its panic.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
