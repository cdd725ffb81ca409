//! A netlink socket: sends requests and receives responses.

use std::io;
use std::sync::{Mutex, PoisonError};

use super::message::{HEADER_LENGTH, Request, Response, aligned, find, text, u16_at, u32_at};
use crate::socket::Socket;

/// The size of the receive buffer; the kernel sends smaller messages (`NLMSG_GOODSIZE`).
const BUFFER_LENGTH: usize = 64 << 10;

/// Options of netlink(7): errors contain an explanation instead of the whole request.
const NETLINK_CAP_ACK: i32 = 10;
const NETLINK_EXT_ACK: i32 = 11;

/// The flag of an error with attributes, and the attribute with the explanation (linux/netlink.h).
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLMSGERR_ATTR_MSG: u16 = 1;

/// A socket for requests in the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Connection {
    exchange: Mutex<Exchange>,
}

#[derive(Debug)]
struct Exchange {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

/// The error of a request.
#[derive(Debug)]
pub(crate) struct RequestError {
    pub(crate) source: io::Error,
    /// The explanation of the kernel, if any.
    pub(crate) message: Option<String>,
}

impl Connection {
    /// Opens a socket of a netlink protocol, such as `NETLINK_ROUTE`.
    pub(crate) fn open(protocol: i32) -> io::Result<Connection> {
        let socket = Socket::open(libc::AF_NETLINK, libc::SOCK_RAW, protocol)?;
        // Optional: older kernels report errors without an explanation.
        for option in [NETLINK_CAP_ACK, NETLINK_EXT_ACK] {
            let _ = socket.set(libc::SOL_NETLINK, option, &1_i32);
        }
        let exchange = Exchange { socket, sequence: 0, buffer: vec![0; BUFFER_LENGTH] };
        Ok(Connection { exchange: Mutex::new(exchange) })
    }

    /// Sends a request with additional `flags`, and waits for the responses.
    pub(crate) fn request(&self, request: Request, flags: i32) -> Result<Vec<Response>, RequestError> {
        self.exchange(request, libc::NLM_F_ACK | flags)
    }

    /// Requests a complete list.
    pub(crate) fn list(&self, request: Request) -> Result<Vec<Response>, RequestError> {
        self.exchange(request, libc::NLM_F_DUMP)
    }

    fn exchange(&self, request: Request, flags: i32) -> Result<Vec<Response>, RequestError> {
        let mut exchange = self.exchange.lock().unwrap_or_else(PoisonError::into_inner);
        exchange.sequence = exchange.sequence.wrapping_add(1);
        let sequence = exchange.sequence;
        exchange.socket.send(&request.finish((libc::NLM_F_REQUEST | flags) as u16, sequence))?;
        let mut responses = Vec::new();
        while !exchange.receive(&mut responses)? {}
        Ok(responses)
    }
}

impl Exchange {
    /// Receives once. Returns whether the response is complete.
    fn receive(&mut self, responses: &mut Vec<Response>) -> Result<bool, RequestError> {
        let length = self.socket.receive(&mut self.buffer, 0)?;
        let mut rest = &self.buffer[..length];
        while let (Some(length), Some(kind), Some(flags), Some(sequence)) =
            (u32_at(rest, 0), u16_at(rest, 4), u16_at(rest, 6), u32_at(rest, 8))
        {
            let payload = rest.get(HEADER_LENGTH..length as usize).ok_or(io::ErrorKind::InvalidData)?;
            rest = rest.get(aligned(length as usize)..).unwrap_or_default();
            if sequence != self.sequence {
                // A response to an earlier, abandoned request.
                continue;
            }
            match i32::from(kind) {
                libc::NLMSG_DONE | libc::NLMSG_ERROR => return outcome(payload, flags).map(|()| true),
                _ => responses.push(Response { kind, payload: payload.to_vec() }),
            }
        }
        Ok(false)
    }
}

/// Decodes the result of a request: zero is success, a negative number is an error.
fn outcome(payload: &[u8], flags: u16) -> Result<(), RequestError> {
    let number = u32_at(payload, 0).map_or(-libc::EIO, |number| number as i32);
    if number >= 0 {
        return Ok(());
    }
    // The header of the request follows the number.
    let attributes = payload.get(4 + HEADER_LENGTH..).filter(|_| flags & NLM_F_ACK_TLVS != 0);
    let message = attributes.and_then(|attributes| find(attributes, NLMSGERR_ATTR_MSG)).map(text);
    Err(RequestError { source: io::Error::from_raw_os_error(-number), message })
}

impl From<io::Error> for RequestError {
    fn from(source: io::Error) -> RequestError {
        RequestError { source, message: None }
    }
}

impl From<io::ErrorKind> for RequestError {
    fn from(kind: io::ErrorKind) -> RequestError {
        io::Error::from(kind).into()
    }
}
