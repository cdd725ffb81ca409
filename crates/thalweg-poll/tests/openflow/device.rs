//! A switch that answers requests for statistics from a model that a test changes.

use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use thalweg_openflow::scripted_switch::{ScriptedSwitch, features, port};
use thalweg_wire::openflow::multipart::{
    MultipartReply, MultipartRequest, PortStats, QueueStats, Reply, Request,
};
use thalweg_wire::openflow::{
    Body, DatapathId, ErrorMessage, ErrorType, Hello, Message, Port, PortNumber, PortReason, PortStatus,
    QueueId, Text, Xid,
};

/// What a switch has and does. Outlives its connections.
#[derive(Clone, Default)]
pub(crate) struct Model(Arc<Mutex<Contents>>);

#[derive(Default)]
pub(crate) struct Contents {
    pub(crate) ports: Vec<(Port, PortStats)>,
    pub(crate) queues: Vec<QueueStats>,
    /// Answers requests of this name with an error.
    pub(crate) refused: Option<(&'static str, ErrorMessage)>,
    /// Leaves requests of this name unanswered.
    pub(crate) unanswered: Option<&'static str>,
    /// Answers requests for a queue that does not exist with none, not with an error.
    pub(crate) omits_queues: bool,
    /// The ports have these numbers after the next requests for counters of a port: the first ones first.
    pub(crate) renumbered: Vec<[u32; 2]>,
    /// All messages that it received.
    pub(crate) received: Vec<Body>,
}

/// A connected switch; disconnects on drop.
pub(crate) struct Device {
    stream: TcpStream,
    thread: Option<JoinHandle<()>>,
}

/// A port and its counters: all are multiples of the number.
pub(crate) fn port_of(name: &str, number: u32, age: u32) -> (Port, PortStats) {
    let port = Port { name: Text::new(name), curr_speed: 1_000_000, ..port(number) };
    let count = u64::from(number);
    let stats = PortStats {
        port_no: PortNumber(number),
        rx_packets: 1_000 * count,
        tx_packets: 2_000 * count,
        rx_bytes: 1_000_000 * count,
        tx_bytes: 2_000_000 * count,
        rx_dropped: 3 * count,
        tx_dropped: 4 * count,
        rx_errors: 5 * count,
        tx_errors: 6 * count,
        rx_frame_err: u64::MAX,
        rx_over_err: u64::MAX,
        rx_crc_err: u64::MAX,
        collisions: u64::MAX,
        duration_sec: age,
        duration_nsec: 500_000_000,
    };
    (port, stats)
}

pub(crate) fn queue_of(port: u32, number: u32, packets: u64, errors: u64, age: u32) -> QueueStats {
    QueueStats {
        port_no: PortNumber(port),
        queue_id: QueueId(number),
        tx_bytes: packets * 1_000,
        tx_packets: packets,
        tx_errors: errors,
        duration_sec: age,
        duration_nsec: 0,
    }
}

impl Model {
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Contents) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    /// Connects to a controller.
    pub(crate) fn connect(&self, address: SocketAddr, datapath: DatapathId) -> Device {
        self.serve(TcpStream::connect(address).unwrap(), datapath)
    }

    /// Accepts the connection of a controller.
    pub(crate) fn accept(&self, listener: &TcpListener, datapath: DatapathId) -> Device {
        self.serve(listener.accept().unwrap().0, datapath)
    }

    fn serve(&self, stream: TcpStream, datapath: DatapathId) -> Device {
        let mut switch = ScriptedSwitch::new(Box::new(stream.try_clone().unwrap()));
        let model = self.clone();
        let thread = std::thread::spawn(move || {
            switch.send(Xid(0), Body::Hello(Hello::supported()));
            while let Some(message) = switch.try_receive() {
                model.answer(&mut switch, message, datapath);
            }
        });
        Device { stream, thread: Some(thread) }
    }

    fn answer(&self, switch: &mut ScriptedSwitch, message: Message, datapath: DatapathId) {
        let mut contents = self.0.lock().unwrap();
        let Message { xid, body } = message;
        contents.received.push(body.clone());
        match body {
            Body::FeaturesRequest => switch.send(xid, Body::FeaturesReply(features(datapath))),
            Body::BarrierRequest => switch.send(xid, Body::BarrierReply),
            Body::EchoRequest(data) => switch.send(xid, Body::EchoReply(data)),
            Body::MultipartRequest(MultipartRequest { request, .. }) => {
                contents.answer_request(switch, xid, &request);
            }
            _ => {}
        }
    }
}

impl Contents {
    fn answer_request(&mut self, switch: &mut ScriptedSwitch, xid: Xid, request: &Request) {
        if self.unanswered == Some(request.name()) {
            return;
        }
        if let Some((_, error)) = self.refused.as_ref().filter(|(name, _)| *name == request.name()) {
            return switch.send(xid, Body::Error(error.clone()));
        }
        let reply = match request {
            Request::PortDesc => Reply::PortDesc(self.ports.iter().map(|(port, _)| *port).collect()),
            Request::PortStats(filter) => {
                if !self.renumbered.is_empty() {
                    let numbers = self.renumbered.remove(0);
                    self.renumber(numbers);
                    let (port, _) = self.ports[0];
                    let status = PortStatus { reason: PortReason::ADD, port };
                    switch.send(Xid(0), Body::PortStatus(status));
                }
                let stats = self.ports.iter().map(|(_, stats)| *stats);
                Reply::PortStats(stats.filter(|stats| stats.port_no == filter.port_no).collect())
            }
            Request::Queue(filter) => {
                let is_wanted = |queue: &QueueStats| {
                    queue.port_no == filter.port_no
                        && [queue.queue_id, QueueId::ALL].contains(&filter.queue_id)
                };
                let found: Vec<_> = self.queues.iter().copied().filter(is_wanted).collect();
                if found.is_empty() && filter.queue_id != QueueId::ALL && !self.omits_queues {
                    let error =
                        ErrorMessage { error_type: ErrorType::QUEUE_OP_FAILED, code: 1, data: vec![] };
                    return switch.send(xid, Body::Error(error));
                }
                Reply::Queue(found)
            }
            other => panic!("{other:?}"),
        };
        switch.send(xid, Body::MultipartReply(MultipartReply { more: false, reply }));
    }

    /// Gives the first two ports these numbers.
    pub(crate) fn renumber(&mut self, numbers: [u32; 2]) {
        for ((port, stats), number) in self.ports.iter_mut().zip(numbers) {
            let before = port.port_no;
            let queues = self.queues.iter_mut().filter(|queue| queue.port_no == before);
            // A number that is not in use, so that the second port does not take those of the first.
            queues.for_each(|queue| queue.port_no = PortNumber(number + 1_000));
            (port.port_no, stats.port_no) = (PortNumber(number), PortNumber(number));
        }
        self.queues.iter_mut().for_each(|queue| queue.port_no = PortNumber(queue.port_no.0 % 1_000));
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

pub(crate) fn local() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}
