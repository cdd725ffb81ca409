//! What an error message says (section "Error Message").

use std::fmt;

layout! {
    /// What was asked cannot be done. Its xid is that of the message at fault.
    pub struct ErrorMessage {
        /// What kind of error.
        error_type: ErrorType,
        /// Which, by the numbering of its type.
        code: u16,
        /// At least 64 bytes of the message at fault, or all of it; of a failed hello, a text.
        data: Vec<u8>,
    }
}

numbers! {
    /// What kind of error.
    ErrorType(u16) {
        /// There is no version that both speak.
        HELLO_FAILED = 0, "hello failed";
        /// The message was not understood.
        BAD_REQUEST = 1, "bad request";
        /// An action is wrong.
        BAD_ACTION = 2, "bad action";
        /// An instruction is wrong.
        BAD_INSTRUCTION = 3, "bad instruction";
        /// A match is wrong.
        BAD_MATCH = 4, "bad match";
        /// A flow entry could not be changed.
        FLOW_MOD_FAILED = 5, "flow-mod failed";
        /// A group could not be changed.
        GROUP_MOD_FAILED = 6, "group-mod failed";
        /// A port could not be changed.
        PORT_MOD_FAILED = 7, "port-mod failed";
        /// A table could not be changed.
        TABLE_MOD_FAILED = 8, "table-mod failed";
        /// What was asked of queues cannot be answered.
        QUEUE_OP_FAILED = 9, "queue operation failed";
        /// The switch could not be set so.
        SWITCH_CONFIG_FAILED = 10, "switch config failed";
        /// The role cannot be had.
        ROLE_REQUEST_FAILED = 11, "role request failed";
        /// A meter could not be changed.
        METER_MOD_FAILED = 12, "meter-mod failed";
        /// Table features could not be set.
        TABLE_FEATURES_FAILED = 13, "table features failed";
        /// An error of an experimenter's.
        EXPERIMENTER = 0xffff, "experimenter's error";
    }
}

/// Codes by type, in the words of their names (`OFPBMC_BAD_FIELD` is "bad field").
const CODES: [&[&str]; 14] = [
    &["incompatible", "eperm"],
    &[
        "bad version",
        "bad type",
        "bad multipart",
        "bad experimenter",
        "bad experimenter type",
        "eperm",
        "bad length",
        "buffer empty",
        "buffer unknown",
        "bad table id",
        "is slave",
        "bad port",
        "bad packet",
        "multipart buffer overflow",
    ],
    &[
        "bad type",
        "bad length",
        "bad experimenter",
        "bad experimenter type",
        "bad out port",
        "bad argument",
        "eperm",
        "too many",
        "bad queue",
        "bad out group",
        "match inconsistent",
        "unsupported order",
        "bad tag",
        "bad set type",
        "bad set length",
        "bad set argument",
    ],
    &[
        "unknown instruction",
        "unsupported instruction",
        "bad table id",
        "unsupported metadata",
        "unsupported metadata mask",
        "bad experimenter",
        "bad experimenter type",
        "bad length",
        "eperm",
    ],
    &[
        "bad type",
        "bad length",
        "bad tag",
        "bad data link address mask",
        "bad network address mask",
        "bad wildcards",
        "bad field",
        "bad value",
        "bad mask",
        "bad prerequisite",
        "duplicate field",
        "eperm",
    ],
    &["unknown", "table full", "bad table id", "overlap", "eperm", "bad timeout", "bad command", "bad flags"],
    &[
        "group exists",
        "invalid group",
        "weight unsupported",
        "out of groups",
        "out of buckets",
        "chaining unsupported",
        "watch unsupported",
        "loop",
        "unknown group",
        "chained group",
        "bad type",
        "bad command",
        "bad bucket",
        "bad watch",
        "eperm",
    ],
    &["bad port", "bad hardware address", "bad config", "bad advertise", "eperm"],
    &["bad table", "bad config", "eperm"],
    &["bad port", "bad queue", "eperm"],
    &["bad flags", "bad length", "eperm"],
    &["stale", "unsupported", "bad role"],
    &[
        "unknown",
        "meter exists",
        "invalid meter",
        "unknown meter",
        "bad command",
        "bad flags",
        "bad rate",
        "bad burst",
        "bad band",
        "bad band value",
        "out of meters",
        "out of bands",
    ],
    &["bad table", "bad metadata", "bad type", "bad length", "bad argument", "eperm"],
];

impl ErrorMessage {
    /// The code's name, if its type has one for it.
    pub fn code_name(&self) -> Option<&'static str> {
        CODES.get(usize::from(self.error_type.0))?.get(usize::from(self.code)).copied()
    }
}

/// Type and code by name, as in "bad match: bad field (type 4, code 6)".
impl fmt::Display for ErrorMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, code) = (self.error_type, self.code);
        write!(f, "{kind}: {} (type {}, code {code})", self.code_name().unwrap_or("unknown code"), kind.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_by_the_names_of_its_type_and_code() {
        let told =
            |number, code| ErrorMessage { error_type: ErrorType(number), code, data: vec![] }.to_string();
        assert_eq!(told(4, 6), "bad match: bad field (type 4, code 6)");
        assert_eq!(told(5, 1), "flow-mod failed: table full (type 5, code 1)");
        assert_eq!(told(6, 14), "group-mod failed: eperm (type 6, code 14)");
        assert_eq!(told(13, 6), "table features failed: unknown code (type 13, code 6)");
        assert_eq!(told(77, 0), "77: unknown code (type 77, code 0)");
    }
}
