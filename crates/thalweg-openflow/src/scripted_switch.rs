//! A switch that follows the script of a test: for the tests of this crate, and of others with the feature `scripted-switch`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use thalweg_wire::MacAddress;
use thalweg_wire::openflow::multipart::{
    FlowStats, GroupDescription, MultipartReply, MultipartRequest, Reply, Request,
};
use thalweg_wire::openflow::{
    Action, Body, Bucket, Capabilities, DatapathId, ErrorMessage, ErrorType, FlowFlags, GroupId, GroupType,
    Hello, Instruction, Match, Message, Port, PortConfig, PortFeatures, PortNumber, PortState,
    SwitchFeatures, TableId, Text, Xid, first_message,
};

/// Maximum time of any step on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection, encrypted or not.
pub trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// A switch's end of a connection.
pub struct ScriptedSwitch {
    stream: Box<dyn Stream>,
    inbox: Vec<u8>,
}

impl ScriptedSwitch {
    /// Connects to a controller.
    pub fn connect(address: SocketAddr) -> ScriptedSwitch {
        ScriptedSwitch::over(TcpStream::connect(address).unwrap())
    }

    /// Accepts the connection of a controller.
    pub fn accept(listener: &TcpListener) -> ScriptedSwitch {
        ScriptedSwitch::over(listener.accept().unwrap().0)
    }

    fn over(stream: TcpStream) -> ScriptedSwitch {
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        ScriptedSwitch::new(Box::new(stream))
    }

    /// Follows the script over any stream.
    pub fn new(stream: Box<dyn Stream>) -> ScriptedSwitch {
        ScriptedSwitch { stream, inbox: Vec::new() }
    }

    /// Sends bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
        self.stream.flush().unwrap();
    }

    /// Sends a message.
    pub fn send(&mut self, xid: Xid, body: Body) {
        let mut bytes = Vec::new();
        Message { xid, body }.encode(&mut bytes).unwrap();
        self.write(&bytes);
    }

    /// Returns the next message.
    pub fn receive(&mut self) -> Message {
        self.try_receive().expect("an open connection")
    }

    /// The next message; `None` if the connection ended.
    pub fn try_receive(&mut self) -> Option<Message> {
        loop {
            if let Some(bytes) = first_message(&self.inbox).unwrap() {
                let (message, length) = (Message::decode(bytes).unwrap(), bytes.len());
                self.inbox.drain(..length);
                return Some(message);
            }
            let mut chunk = [0; 4_096];
            let length = self.stream.read(&mut chunk).ok().filter(|&length| length > 0)?;
            self.inbox.extend_from_slice(&chunk[..length]);
        }
    }

    /// Receives a batch and returns the xid of its barrier.
    pub fn receive_until_barrier(&mut self) -> Xid {
        loop {
            let message = self.receive();
            if message.body == Body::BarrierRequest {
                return message.xid;
            }
        }
    }

    /// Exchanges hello.
    pub fn hello(&mut self) {
        self.send(Xid(0), Body::Hello(Hello::supported()));
        assert_eq!(self.receive().body, Body::Hello(Hello::supported()));
    }

    /// Completes the handshake and returns the requests.
    pub fn complete_handshake(&mut self, datapath: DatapathId) -> Vec<Body> {
        self.hello();
        self.answer_requests(datapath)
    }

    /// Answers all requests of the handshake after hello, and returns them.
    pub fn answer_requests(&mut self, datapath: DatapathId) -> Vec<Body> {
        self.answer(datapath, None)
    }

    /// Answers all requests except the named one.
    pub fn refuse_request(&mut self, name: &str, datapath: DatapathId) {
        self.answer(datapath, Some(name));
    }

    fn answer(&mut self, datapath: DatapathId, refused: Option<&str>) -> Vec<Body> {
        let mut requests = Vec::new();
        loop {
            let Message { xid, body } = self.receive();
            requests.push(body.clone());
            let mut reply =
                |more, reply| self.send(xid, Body::MultipartReply(MultipartReply { more, reply }));
            match body {
                Body::MultipartRequest(MultipartRequest { request, .. }) => match request {
                    request if Some(request.name()) == refused => {
                        let error =
                            ErrorMessage { error_type: ErrorType::BAD_REQUEST, code: 2, data: vec![] };
                        self.send(xid, Body::Error(error));
                    }
                    Request::PortDesc => {
                        reply(true, Reply::PortDesc(vec![port(1)]));
                        reply(false, Reply::PortDesc(vec![port(2)]));
                    }
                    Request::Flow(_) => reply(false, Reply::Flow(vec![flow()])),
                    Request::GroupDesc => reply(false, Reply::GroupDesc(vec![group()])),
                    other => panic!("{other:?}"),
                },
                Body::FeaturesRequest => self.send(xid, Body::FeaturesReply(features(datapath))),
                Body::SetConfig(_) | Body::SetAsync(_) => {}
                Body::BarrierRequest => {
                    self.send(xid, Body::BarrierReply);
                    return requests;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Returns the features of a switch.
pub fn features(datapath_id: DatapathId) -> SwitchFeatures {
    let capabilities = Capabilities::FLOW_STATS;
    SwitchFeatures { datapath_id, n_buffers: 0, n_tables: 1, auxiliary_id: 0, capabilities }
}

/// Returns a port that is up, with the name `eth`.
pub fn port(number: u32) -> Port {
    Port {
        port_no: PortNumber(number),
        hw_addr: MacAddress([2, 0, 0, 0, 0, number as u8]),
        name: Text::new("eth"),
        config: PortConfig::default(),
        state: PortState::default(),
        curr: PortFeatures::default(),
        advertised: PortFeatures::default(),
        supported: PortFeatures::default(),
        peer: PortFeatures::default(),
        curr_speed: 0,
        max_speed: 0,
    }
}

/// Returns a flow entry.
pub fn flow() -> FlowStats {
    FlowStats {
        table_id: TableId(0),
        duration_sec: 1,
        duration_nsec: 0,
        priority: 1,
        idle_timeout: 0,
        hard_timeout: 0,
        flags: FlowFlags::default(),
        cookie: 0x74 << 56,
        packet_count: 0,
        byte_count: 0,
        matching: Match::any(),
        instructions: vec![Instruction::ApplyActions(vec![Action::Group(GroupId(1))])],
    }
}

fn group() -> GroupDescription {
    let buckets = vec![Bucket::new(vec![Action::output(PortNumber(1))])];
    GroupDescription { group_type: GroupType::INDIRECT, group_id: GroupId(1), buckets }
}
