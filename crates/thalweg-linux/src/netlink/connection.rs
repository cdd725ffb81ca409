//! A netlink socket: requests, and the kernel's answers.

use std::io;
use std::sync::{Mutex, PoisonError};

use super::message::{Answer, HEADER_LENGTH, Request, aligned, find, text, u16_at, u32_at};
use crate::socket::Socket;

/// Largest answer that the kernel sends at once (`NLMSG_GOODSIZE` is less).
const LARGEST_MESSAGE: usize = 64 << 10;

/// Options of netlink(7): errors carry an explanation, and not the whole request.
const NETLINK_CAP_ACK: i32 = 10;
const NETLINK_EXT_ACK: i32 = 11;

/// A flag of an error that has attributes behind it, and the one that has the explanation (linux/netlink.h).
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLMSGERR_ATTR_MSG: u16 = 1;

/// A socket for requests about the network namespace that it was opened in.
#[derive(Debug)]
pub(super) struct Connection {
    exchange: Mutex<Exchange>,
}

#[derive(Debug)]
struct Exchange {
    socket: Socket,
    sequence: u32,
    room: Vec<u8>,
}

/// That the kernel refused a request.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) source: io::Error,
    /// The kernel's explanation, if it gave one.
    pub(crate) message: Option<String>,
}

impl Connection {
    pub(super) fn open() -> io::Result<Connection> {
        let socket = Socket::open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
        // Without them errors are told all the same.
        for option in [NETLINK_CAP_ACK, NETLINK_EXT_ACK] {
            let _ = socket.set(libc::SOL_NETLINK, option, &1_i32);
        }
        let exchange = Exchange { socket, sequence: 0, room: vec![0; LARGEST_MESSAGE] };
        Ok(Connection { exchange: Mutex::new(exchange) })
    }

    /// Asks about one thing or for a change, with `flags` beyond those that every request has; waits for the answer.
    pub(super) fn ask(&self, request: Request, flags: i32) -> Result<Vec<Answer>, Refusal> {
        self.exchange(request, libc::NLM_F_ACK | flags)
    }

    /// Asks for a whole list.
    pub(super) fn list(&self, request: Request) -> Result<Vec<Answer>, Refusal> {
        self.exchange(request, libc::NLM_F_DUMP)
    }

    fn exchange(&self, request: Request, flags: i32) -> Result<Vec<Answer>, Refusal> {
        let mut exchange = self.exchange.lock().unwrap_or_else(PoisonError::into_inner);
        exchange.sequence = exchange.sequence.wrapping_add(1);
        let sequence = exchange.sequence;
        exchange.socket.send(&request.finish((libc::NLM_F_REQUEST | flags) as u16, sequence))?;
        let mut answers = Vec::new();
        while !exchange.receive(&mut answers)? {}
        Ok(answers)
    }
}

impl Exchange {
    /// Receives once; says whether that was the end.
    fn receive(&mut self, answers: &mut Vec<Answer>) -> Result<bool, Refusal> {
        let length = self.socket.receive(&mut self.room, 0)?;
        let mut rest = &self.room[..length];
        while let (Some(length), Some(kind), Some(flags), Some(sequence)) =
            (u32_at(rest, 0), u16_at(rest, 4), u16_at(rest, 6), u32_at(rest, 8))
        {
            let payload = rest.get(HEADER_LENGTH..length as usize).ok_or(io::ErrorKind::InvalidData)?;
            rest = rest.get(aligned(length as usize)..).unwrap_or_default();
            if sequence != self.sequence {
                // Of a request that was given up.
                continue;
            }
            match i32::from(kind) {
                libc::NLMSG_DONE | libc::NLMSG_ERROR => return outcome(payload, flags).map(|()| true),
                _ => answers.push(Answer { kind, payload: payload.to_vec() }),
            }
        }
        Ok(false)
    }
}

/// How a request ended: zero is success, everything else the number of an error, negative.
fn outcome(payload: &[u8], flags: u16) -> Result<(), Refusal> {
    let number = u32_at(payload, 0).map_or(-libc::EIO, |number| number as i32);
    if number >= 0 {
        return Ok(());
    }
    // Behind the number comes the header of the request.
    let attributes = payload.get(4 + HEADER_LENGTH..).filter(|_| flags & NLM_F_ACK_TLVS != 0);
    let message = attributes.and_then(|attributes| find(attributes, NLMSGERR_ATTR_MSG)).map(text);
    Err(Refusal { source: io::Error::from_raw_os_error(-number), message })
}

impl From<io::Error> for Refusal {
    fn from(source: io::Error) -> Refusal {
        Refusal { source, message: None }
    }
}

impl From<io::ErrorKind> for Refusal {
    fn from(kind: io::ErrorKind) -> Refusal {
        io::Error::from(kind).into()
    }
}
