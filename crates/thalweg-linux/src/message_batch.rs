//! Sends or receives many messages of a socket with one system call (sendmmsg(2), recvmmsg(2)).
//!
//! All messages are in one allocation, in places of equal length, so that nothing is allocated later. A connected socket needs no
//! addresses; for others, each message has that of its sender or receiver.

#![expect(unsafe_code, reason = "system calls that take pointers")]

use std::io;
use std::mem::zeroed;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::ptr;

use nix::sys::socket::{SockaddrLike, SockaddrStorage};

/// The maximum number of messages of a system call.
pub const MAX_MESSAGES: usize = 64;

/// Messages of a connected or bound socket, received together.
#[derive(Debug)]
pub struct ReceivedMessages {
    bytes: Box<[u8]>,
    /// The length of a place.
    stride: usize,
    lengths: [usize; MAX_MESSAGES],
    /// The senders, by place; none if they are not wanted.
    senders: Box<[libc::sockaddr_storage]>,
    sender_lengths: [u32; MAX_MESSAGES],
    count: usize,
}

impl ReceivedMessages {
    /// Allocates places for [`MAX_MESSAGES`] messages of at most `max_length` bytes.
    pub fn new(max_length: usize) -> ReceivedMessages {
        let stride = max_length.max(1);
        ReceivedMessages {
            bytes: vec![0; stride * MAX_MESSAGES].into(),
            stride,
            lengths: [0; MAX_MESSAGES],
            senders: Box::default(),
            sender_lengths: [0; MAX_MESSAGES],
            count: 0,
        }
    }

    /// The same with the addresses of senders, for [`iter_from`](ReceivedMessages::iter_from).
    pub fn with_senders(max_length: usize) -> ReceivedMessages {
        // SAFETY: integers, for which zero is valid.
        let nobody: libc::sockaddr_storage = unsafe { zeroed() };
        ReceivedMessages { senders: vec![nobody; MAX_MESSAGES].into(), ..ReceivedMessages::new(max_length) }
    }

    /// Receives the messages that are there, without waiting. They replace the previous ones. Returns their number.
    ///
    /// # Errors
    /// Those of recvmmsg(2); without any message, 0 is returned instead of an error.
    pub fn receive(&mut self, socket: RawFd) -> io::Result<usize> {
        self.count = 0;
        let mut parts = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; MAX_MESSAGES];
        // SAFETY: integers and null pointers, for which zero is valid.
        let mut headers: [libc::mmsghdr; MAX_MESSAGES] = unsafe { zeroed() };
        for ((part, header), place) in
            parts.iter_mut().zip(&mut headers).zip(self.bytes.chunks_exact_mut(self.stride))
        {
            *part = libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: place.len() };
            (header.msg_hdr.msg_iov, header.msg_hdr.msg_iovlen) = (part, 1);
        }
        for (header, sender) in headers.iter_mut().zip(&mut self.senders) {
            header.msg_hdr.msg_name = ptr::from_mut(sender).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
        }
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: as many headers as given, each with one part of the buffer and one address, if any, which the kernel may write.
        let received = unsafe {
            libc::recvmmsg(socket, headers.as_mut_ptr(), MAX_MESSAGES as u32, flags as _, ptr::null_mut())
        };
        let Ok(received) = usize::try_from(received) else {
            return match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                error => Err(error),
            };
        };
        let lengths = self.lengths.iter_mut().zip(&mut self.sender_lengths);
        for ((length, sender_length), header) in lengths.zip(&headers[..received]) {
            *length = (header.msg_len as usize).min(self.stride);
            *sender_length = header.msg_hdr.msg_namelen;
        }
        self.count = received;
        Ok(received)
    }

    /// The messages received last.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let places = self.bytes.chunks_exact(self.stride).zip(&self.lengths);
        places.take(self.count).map(|(place, length)| &place[..*length])
    }

    /// The messages received last with the addresses of their senders. Messages without an IP address are left out.
    pub fn iter_from(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        let senders = self.senders.iter().zip(&self.sender_lengths);
        self.iter().zip(senders).filter_map(|(bytes, (sender, length))| {
            // SAFETY: the kernel wrote an address of this length.
            let sender = unsafe { SockaddrStorage::from_raw(ptr::from_ref(sender).cast(), Some(*length)) };
            Some((socket_address(&sender?)?, bytes))
        })
    }
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = || address.as_sockaddr_in().map(|address| SocketAddr::V4((*address).into()));
    let v6 = || address.as_sockaddr_in6().map(|address| SocketAddr::V6((*address).into()));
    v4().or_else(v6)
}

/// Messages to be sent together: parts of one buffer of the caller.
#[derive(Clone, Debug)]
pub struct MessageRanges {
    /// Offset and length of each.
    ranges: [(usize, usize); MAX_MESSAGES],
    /// The receiver of each, unless the socket is connected or bound to an interface.
    receivers: Option<Box<[SockaddrStorage; MAX_MESSAGES]>>,
    count: usize,
}

impl Default for MessageRanges {
    fn default() -> MessageRanges {
        MessageRanges { ranges: [(0, 0); MAX_MESSAGES], receivers: None, count: 0 }
    }
}

impl MessageRanges {
    /// No messages, each of which will have a receiver.
    pub fn with_receivers() -> MessageRanges {
        let nobody = SockaddrStorage::from(SocketAddr::from(([0, 0, 0, 0], 0)));
        MessageRanges { receivers: Some(Box::new([nobody; MAX_MESSAGES])), ..MessageRanges::default() }
    }

    /// Adds a message to a receiver: `length` bytes from `offset` on.
    ///
    /// # Panics
    /// If there are [`MAX_MESSAGES`] already, or the messages have no receivers.
    #[inline]
    pub fn push_to(&mut self, receiver: SocketAddr, offset: usize, length: usize) {
        let receivers = self.receivers.as_mut().expect("made by with_receivers");
        receivers[self.count] = receiver.into();
        self.push(offset, length);
    }

    /// Adds a message for the socket's peer: `length` bytes from `offset` on.
    ///
    /// # Panics
    /// If there are [`MAX_MESSAGES`] already.
    #[inline]
    pub fn push(&mut self, offset: usize, length: usize) {
        self.ranges[self.count] = (offset, length);
        self.count += 1;
    }

    /// The number of messages.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether there are [`MAX_MESSAGES`].
    #[inline]
    pub fn is_full(&self) -> bool {
        self.count == MAX_MESSAGES
    }

    /// Sends all messages, without waiting, and forgets them. Calls `refused` for each that the kernel did not take.
    ///
    /// # Panics
    /// If a message is outside the buffer.
    pub fn send(&mut self, socket: RawFd, buffer: &[u8], mut refused: impl FnMut(io::Error)) {
        // SAFETY: integers and null pointers, for which zero is valid.
        let mut headers: [libc::mmsghdr; MAX_MESSAGES] = unsafe { zeroed() };
        let mut parts = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; MAX_MESSAGES];
        let count = std::mem::take(&mut self.count);
        for ((part, header), &(offset, length)) in
            parts.iter_mut().zip(&mut headers).zip(&self.ranges[..count])
        {
            let message = &buffer[offset..][..length];
            *part = libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: length };
            (header.msg_hdr.msg_iov, header.msg_hdr.msg_iovlen) = (part, 1);
        }
        if let Some(receivers) = &self.receivers {
            for (header, receiver) in headers[..count].iter_mut().zip(receivers.iter()) {
                header.msg_hdr.msg_name = receiver.as_ptr().cast_mut().cast();
                header.msg_hdr.msg_namelen = receiver.len();
            }
        }
        let mut first = 0;
        while first < count {
            let (rest, flags) = (&mut headers[first..count], libc::MSG_DONTWAIT);
            // SAFETY: as many headers as given, each with one part of the buffer and one address, if any, which the kernel only reads.
            let sent = unsafe { libc::sendmmsg(socket, rest.as_mut_ptr(), rest.len() as u32, flags as _) };
            match usize::try_from(sent) {
                Ok(sent) if sent > 0 => first += sent,
                // The kernel reports the error of the first message only if it sent none before it.
                _ => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => {
                        refused(error);
                        first += 1;
                    }
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn messages_arrive_as_they_were_sent_and_one_that_is_refused_does_not_stop_the_others() {
        let [from, to] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        from.connect(to.local_addr().unwrap()).unwrap();
        let mut received = ReceivedMessages::new(8);
        assert_eq!(received.receive(to.as_raw_fd()).unwrap(), 0);
        let buffer = vec![7; 70_000];
        let mut ranges = MessageRanges::default();
        // The second is longer than a datagram can be.
        [(0, 3), (0, 70_000), (5, 0), (9, 12)]
            .into_iter()
            .for_each(|(offset, length)| ranges.push(offset, length));
        let mut errors = Vec::new();
        ranges.send(from.as_raw_fd(), &buffer, |error| errors.push(error.raw_os_error()));
        assert_eq!((errors, ranges.len()), (vec![Some(libc::EMSGSIZE)], 0));
        assert_eq!(received.receive(to.as_raw_fd()).unwrap(), 3);
        let lengths: Vec<usize> = received.iter().map(<[u8]>::len).collect();
        assert_eq!(lengths, [3, 0, 8], "the last one is cut to its place");
    }

    #[test]
    fn messages_without_a_connection_have_addresses_of_both_versions() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(from) = UdpSocket::bind(any) else { continue };
            let [one, two] = [(); 2].map(|()| UdpSocket::bind(any).unwrap());
            let mut ranges = MessageRanges::with_receivers();
            for (offset, to) in [(0, &one), (1, &two), (2, &one)] {
                ranges.push_to(to.local_addr().unwrap(), offset, 2);
            }
            ranges.send(from.as_raw_fd(), &[1, 2, 3, 4], |error| panic!("{error}"));
            let sender = from.local_addr().unwrap();
            for (socket, expected) in [(&one, &[[1, 2], [3, 4]][..]), (&two, &[[2, 3]])] {
                let mut received = ReceivedMessages::with_senders(8);
                while received.receive(socket.as_raw_fd()).unwrap() == 0 {}
                let expected = expected.iter().map(|bytes| (sender, bytes.as_slice()));
                assert!(received.iter_from().eq(expected), "{any}");
            }
        }
    }
}
