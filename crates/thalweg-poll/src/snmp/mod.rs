//! Interface counters of a router by SNMP v2c and v3 (RFC 3416, RFC 3414): IF-MIB (RFC 2863).
//!
//! **Index.** The interface is known by its `ifName`, `ifAlias` or `ifDescr`. Its index is looked up once, and each request
//! reads the name along with the counters: if it is another one, the index is looked up again. Counters of an interface are
//! never taken for those of another. If several interfaces have the name, the one that is up is read.
//!
//! **Width.** Bytes and packets have 64 bits (`ifHC...`). If the agent has none, the counters of 32 bits are read.
//! `ifOutDiscards` and `ifOutErrors` have 32 bits in any case.
//!
//! **Time.** An agent may cache counters (net-snmp: 2 to 3 s). A rate needs the time of the cache, so the source reads the bytes
//! every [`PROBE_INTERVAL`] until they change, at most for [`SnmpOptions::cache_time`]: then the cache is new. If they do not
//! change, the interface is idle, and its rate is 0 at any time.
//!
//! **Queues.** IF-MIB counts a port. Counters of queues are objects of the vendor's MIB ([`QueueObjects`]).
//!
//! The client is asynchronous; the source runs it on a runtime of its own and blocks.

mod credentials;
mod objects;
mod queues;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use async_snmp::v3::ReportStatus;
use async_snmp::{Client, Error, Oid, Retry, UdpHandle, Value};
use thalweg_wire::{BitRate, Nanos, Timestamp};
use tokio::runtime::Runtime;
use tracing::subscriber::{NoSubscriber, with_default};

pub use credentials::Credentials;
pub use queues::{OidTemplate, QueueObjects};

use crate::{Counter, CounterSource, InterfaceReading, PortCounters, QueueCounters, ReadError, Scope};
use objects::{
    Column, IF_ALIAS, IF_COUNTER_DISCONTINUITY_TIME, IF_DESCR, IF_HC_IN_OCTETS, IF_HC_OUT_OCTETS,
    IF_HIGH_SPEED, IF_IN_OCTETS, IF_NAME, IF_OPER_STATUS, IF_OUT_OCTETS, IF_SPEED, INPUT, OUTPUT,
    PortColumns, SYS_UP_TIME,
};

/// Interval of requests while counters are cached.
pub const PROBE_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum number of interfaces of an agent.
const MAX_INTERFACES: usize = 65_536;

/// Rows per request of a walk.
const WALK_ROWS: u32 = 25;

/// Names in an error message.
const NAMES_SHOWN: usize = 8;

/// The object that names the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NameObject {
    /// `ifName`: the short name, such as `Gi0/1` or `eth0`.
    #[default]
    Name,
    /// `ifAlias`: the description that operators set.
    Alias,
    /// `ifDescr`: the description of the vendor.
    Description,
}

/// What to read.
#[derive(Clone, Debug)]
pub struct SnmpOptions {
    /// Address or name, and port: `192.0.2.1:161`.
    pub target: String,
    /// Name of the interface.
    pub interface: String,
    /// The object that contains it.
    pub name_object: NameObject,
    /// Credentials.
    pub credentials: Credentials,
    /// Timeout of one request.
    pub timeout: Duration,
    /// Number of times that a request is repeated.
    pub retries: u32,
    /// The longest time for which the agent caches counters; zero if it does not.
    pub cache_time: Duration,
    /// Objects of the primary queue, if it is counted.
    pub primary: Option<QueueObjects>,
    /// Objects of the scavenger queue, if it is counted.
    pub scavenger: Option<QueueObjects>,
    /// Whether the port has only one queue.
    pub has_one_queue: bool,
}

/// Reads an interface of an SNMP agent.
pub struct Snmp {
    options: SnmpOptions,
    runtime: Runtime,
    /// `None` before the first request, and after an error.
    client: Option<Client<UdpHandle>>,
    /// The index, once it is known.
    index: Option<u32>,
}

/// What a request for the counters found.
enum Outcome {
    Reading(Box<InterfaceReading>),
    /// The index belongs to another interface, or to none.
    IndexChanged,
}

impl NameObject {
    const fn column(self) -> Column {
        match self {
            NameObject::Name => IF_NAME,
            NameObject::Alias => IF_ALIAS,
            NameObject::Description => IF_DESCR,
        }
    }
}

impl Snmp {
    /// Creates a source. Sends nothing.
    ///
    /// # Errors
    /// If the runtime cannot be created.
    pub fn new(options: SnmpOptions) -> std::io::Result<Snmp> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Snmp { options, runtime, client: None, index: None })
    }

    async fn connect(options: &SnmpOptions) -> Result<Client<UdpHandle>, ReadError> {
        let retry = Retry::fixed(options.retries, Duration::ZERO);
        let retry = retry.map_err(|error| options.protocol(error.to_string()))?;
        Client::builder(options.target.as_str(), options.credentials.auth())
            .request_timeout(options.timeout)
            .construction_timeout(options.timeout)
            .retry(retry)
            .connect()
            .await
            .map_err(|error| options.failed(&error))
    }
}

impl CounterSource for Snmp {
    fn description(&self) -> String {
        let SnmpOptions { target, interface, credentials, name_object, .. } = &self.options;
        format!("SNMP {} of {target}, {} {interface}", credentials.level(), name_object.column().name)
    }

    fn read(&mut self, clock: &dyn Fn() -> Timestamp) -> Result<InterfaceReading, ReadError> {
        // The client logs every failed request; callers log what they make of it.
        with_default(NoSubscriber::default(), || self.request(clock))
    }
}

impl Snmp {
    fn request(&mut self, clock: &dyn Fn() -> Timestamp) -> Result<InterfaceReading, ReadError> {
        let Snmp { options, runtime, client, index } = self;
        let result = runtime.block_on(async {
            let agent = match client {
                Some(client) => client,
                None => client.insert(Snmp::connect(options).await?),
            };
            Exchange { options, client: agent, index, clock }.read().await
        });
        let Err(error) = result else { return result };
        // A new socket, so that late answers reach nobody.
        *client = None;
        match error {
            ReadError::Timeout { .. } => Err(runtime.block_on(explained(options, error))),
            error => Err(error),
        }
    }
}

/// Explains a timeout. An agent answers wrong credentials of SNMP v3 by an unauthenticated report, which the client must ignore
/// because anybody can send it. If the agent answers a request without authentication, the credentials are wrong.
async fn explained(with_credentials: &SnmpOptions, timeout: ReadError) -> ReadError {
    let Some(probe) = with_credentials.credentials.probe() else { return timeout };
    let options = SnmpOptions { credentials: probe, retries: 0, ..with_credentials.clone() };
    let Ok(client) = Snmp::connect(&options).await else { return timeout };
    let refused = |message: &str| ReadError::Credentials {
        target: options.target.clone(),
        user: options.credentials.user().to_owned(),
        message: message.to_owned(),
    };
    let answers = match client.get(&Oid::from_slice(SYS_UP_TIME)).await {
        Ok(_) => true,
        Err(error) => match options.failed(&error) {
            ReadError::Timeout { .. } => false,
            unknown @ ReadError::Credentials { .. } if unknown.to_string().contains(UNKNOWN_USER) => {
                return unknown;
            }
            _ => true,
        },
    };
    match answers && !is_accepted(with_credentials).await {
        true => refused("it answers, but not to authenticated requests: wrong password or protocol"),
        false => timeout,
    }
}

/// Whether the agent answers an authenticated request now: it may have been starting.
async fn is_accepted(options: &SnmpOptions) -> bool {
    match Snmp::connect(options).await {
        Ok(client) => client.get(&Oid::from_slice(SYS_UP_TIME)).await.is_ok(),
        Err(_) => false,
    }
}

/// What an agent reports of a user that it does not know.
const UNKNOWN_USER: &str = "unknown user";

/// The requests of one reading.
struct Exchange<'a> {
    options: &'a SnmpOptions,
    client: &'a Client<UdpHandle>,
    index: &'a mut Option<u32>,
    clock: &'a dyn Fn() -> Timestamp,
}

impl Exchange<'_> {
    async fn read(&mut self) -> Result<InterfaceReading, ReadError> {
        let known = *self.index;
        if let Some(index) = known {
            let error = self.wait_for_new_cache(index).await?;
            match self.counters(index, error).await {
                // A removed interface may be shown as down, or without some objects, beside a new one of its name.
                Ok(Outcome::Reading(reading)) if reading.is_up || self.resolve().await? == index => {
                    return Ok(*reading);
                }
                Err(error @ ReadError::NoCounter { .. }) if self.resolve().await? == index => {
                    return Err(error);
                }
                Ok(_) | Err(ReadError::NoCounter { .. }) => *self.index = None,
                Err(error) => return Err(error),
            }
        }
        let index = self.resolve().await?;
        *self.index = Some(index);
        let error = self.wait_for_new_cache(index).await?;
        match self.counters(index, error).await? {
            Outcome::Reading(reading) => Ok(*reading),
            Outcome::IndexChanged => {
                *self.index = None;
                let message =
                    format!("the index of interface {} changed during the request", self.options.interface);
                Err(self.options.protocol(message))
            }
        }
    }

    /// Waits until the counters change, at most for the cache time. Returns the maximum error of the time.
    async fn wait_for_new_cache(&self, index: u32) -> Result<Nanos, ReadError> {
        let most = self.options.cache_time;
        let oids =
            [IF_HC_OUT_OCTETS, IF_HC_IN_OCTETS, IF_OUT_OCTETS, IF_IN_OCTETS].map(|column| column.of(index));
        let mut waited = Duration::ZERO;
        let first = match most.is_zero() {
            true => return Ok(Nanos::ZERO),
            false => self.get(&oids).await?,
        };
        while waited < most {
            tokio::time::sleep(PROBE_INTERVAL).await;
            waited += PROBE_INTERVAL;
            if self.get(&oids).await? != first {
                return Ok(Nanos(PROBE_INTERVAL.as_nanos() as u64));
            }
        }
        Ok(Nanos(most.as_nanos() as u64))
    }

    /// Looks up the index of the interface.
    async fn resolve(&self) -> Result<u32, ReadError> {
        let column = self.options.name_object.column();
        let failed = |error: Box<Error>| self.options.failed(&error);
        let mut walk = self.client.bulk_walk(column.oid(), WALK_ROWS).map_err(failed)?;
        let (mut found, mut known, mut rows) = (Vec::new(), Vec::new(), 0);
        while let Some(row) = walk.next().await {
            let row = row.map_err(failed)?;
            let name = text(&row.value);
            rows += 1;
            if rows > MAX_INTERFACES {
                return Err(self.options.protocol(format!("more than {MAX_INTERFACES} interfaces")));
            }
            if name == self.options.interface {
                found.extend(row.oid.arcs().last().copied());
            } else if known.len() < NAMES_SHOWN && !name.is_empty() {
                known.push(name);
            }
        }
        let (target, object) = (self.options.target.clone(), column.name);
        let value = self.options.interface.clone();
        if found.len() > 1 {
            // An agent may show an interface for some time after it was removed, as down.
            found = self.operational(&found[..found.len().min(NAMES_SHOWN)]).await?;
        }
        match found[..] {
            [index] => Ok(index),
            [] => {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(ReadError::NoInterface { target, object, value, known })
            }
            _ => Err(ReadError::Ambiguous { target, object, value, count: found.len() }),
        }
    }

    /// Returns those of the interfaces that are up; all if none is.
    async fn operational(&self, indices: &[u32]) -> Result<Vec<u32>, ReadError> {
        let oids: Vec<Oid> = indices.iter().map(|&index| IF_OPER_STATUS.of(index)).collect();
        let values = self.get(&oids).await?;
        let is_up = |index: &u32| is_up(values.get(&IF_OPER_STATUS.of(*index)));
        let up: Vec<u32> = indices.iter().copied().filter(is_up).collect();
        Ok(if up.is_empty() { indices.to_vec() } else { up })
    }

    /// Reads name and counters of an interface.
    async fn counters(&self, index: u32, time_error: Nanos) -> Result<Outcome, ReadError> {
        let name_column = self.options.name_object.column();
        let mut oids = vec![Oid::from_slice(SYS_UP_TIME), name_column.of(index)];
        let singles = [IF_NAME, IF_DESCR, IF_OPER_STATUS, IF_HIGH_SPEED, IF_COUNTER_DISCONTINUITY_TIME];
        oids.extend(singles.map(|column| column.of(index)));
        for port in [&INPUT, &OUTPUT] {
            oids.push(port.bytes[0].of(index));
            oids.extend(port.wide_packets.map(|column| column.of(index)));
            oids.extend([port.discards.of(index), port.errors.of(index)]);
        }
        let queues = [&self.options.primary, &self.options.scavenger];
        for queue in queues.into_iter().flatten() {
            oids.extend([queue.sent_packets.oid(index), queue.dropped_packets.oid(index)]);
        }
        let before = (self.clock)();
        let mut values = self.get(&oids).await?;
        let name = values.get(&name_column.of(index)).map(text);
        if name.as_deref() != Some(self.options.interface.as_str()) {
            return Ok(Outcome::IndexChanged);
        }
        let is_narrow = !values.contains_key(&OUTPUT.bytes[0].of(index))
            || !values.contains_key(&OUTPUT.wide_packets[0].of(index));
        if is_narrow {
            let narrow = |port: &PortColumns| [port.bytes[1], port.narrow_packets[0], port.narrow_packets[1]];
            let columns = narrow(&INPUT).into_iter().chain(narrow(&OUTPUT)).chain([IF_SPEED]);
            let oids: Vec<Oid> = columns.map(|column| column.of(index)).collect();
            values.append(&mut self.get(&oids).await?);
        }
        let after = (self.clock)();
        let round_trip = Nanos(after.since(before).0 / 2);
        let answer = Answer { options: self.options, values, index };
        answer
            .reading(before + round_trip, time_error.saturating_add(round_trip))
            .map(|reading| Outcome::Reading(Box::new(reading)))
    }

    /// Requests values. Those that do not exist are missing in the result.
    async fn get(&self, oids: &[Oid]) -> Result<BTreeMap<Oid, Value>, ReadError> {
        let response = self.client.get_many(oids).await.map_err(|error| self.options.failed(&error))?;
        let values = response.varbinds.into_iter().filter(|binding| !binding.value.is_exception());
        Ok(values.map(|binding| (binding.oid, binding.value)).collect())
    }
}

/// The values of an answer.
struct Answer<'a> {
    options: &'a SnmpOptions,
    values: BTreeMap<Oid, Value>,
    index: u32,
}

impl Answer<'_> {
    fn reading(&self, time: Timestamp, time_error: Nanos) -> Result<InterfaceReading, ReadError> {
        let queue =
            |objects: &Option<QueueObjects>| objects.as_ref().map(|queue| self.queue(queue)).transpose();
        let (primary, scavenger) = (queue(&self.options.primary)?, queue(&self.options.scavenger)?);
        let scope = match (&primary, &scavenger, self.options.has_one_queue) {
            (Some(_), ..) => Scope::PrimaryQueue,
            (None, Some(_), _) => Scope::PortLessScavenger,
            (None, None, true) => Scope::OneQueue,
            (None, None, false) => Scope::AllQueues,
        };
        let ticks = |oid: &Oid| self.values.get(oid).and_then(Value::as_u32);
        Ok(InterfaceReading {
            time,
            agent: self.options.target.parse().ok().map(|target: SocketAddr| target.ip()),
            time_error,
            name: self
                .values
                .get(&IF_NAME.of(self.index))
                .map_or_else(|| self.options.interface.clone(), text),
            description: self.values.get(&IF_DESCR.of(self.index)).map(text),
            is_up: is_up(self.values.get(&IF_OPER_STATUS.of(self.index))),
            index: self.index,
            speed: self.speed(),
            uptime_ticks: ticks(&Oid::from_slice(SYS_UP_TIME)),
            discontinuity_ticks: ticks(&IF_COUNTER_DISCONTINUITY_TIME.of(self.index)),
            input: self.port(&INPUT)?,
            output: self.port(&OUTPUT)?,
            primary,
            scavenger,
            scope,
        })
    }

    fn speed(&self) -> Option<BitRate> {
        let value = |column: Column| self.values.get(&column.of(self.index)).and_then(Value::as_u64);
        let megabits = value(IF_HIGH_SPEED).filter(|&speed| speed > 0);
        let bits = megabits.map(|megabits| megabits * 1_000_000).or_else(|| value(IF_SPEED));
        bits.filter(|&bits| bits > 0).map(BitRate)
    }

    fn port(&self, columns: &PortColumns) -> Result<PortCounters, ReadError> {
        let optional = |column: Column| self.values.get(&column.of(self.index)).and_then(counter);
        let needed = |column: Column| optional(column).ok_or_else(|| self.missing(column.name.to_owned()));
        let sum = |columns: &[Column]| -> Result<Counter, ReadError> {
            let first = needed(columns[0])?;
            // Agents leave out what an interface does not count.
            Ok(columns[1..].iter().filter_map(|&column| optional(column)).fold(first, Counter::plus))
        };
        let packets = match optional(columns.wide_packets[0]) {
            Some(_) => sum(&columns.wide_packets)?,
            None => sum(&columns.narrow_packets)?,
        };
        let bytes = optional(columns.bytes[0]).map_or_else(|| needed(columns.bytes[1]), Ok)?;
        let discards = Some(needed(columns.discards)?);
        Ok(PortCounters { packets, bytes, errors: optional(columns.errors), discards })
    }

    fn queue(&self, objects: &QueueObjects) -> Result<QueueCounters, ReadError> {
        let value = |template: &OidTemplate| {
            let oid = template.oid(self.index);
            self.values.get(&oid).and_then(counter).ok_or_else(|| self.missing(oid.to_string()))
        };
        Ok(QueueCounters {
            sent_packets: value(&objects.sent_packets)?,
            sent_bytes: None,
            dropped_packets: value(&objects.dropped_packets)?,
            age: None,
        })
    }

    fn missing(&self, object: String) -> ReadError {
        let SnmpOptions { target, interface, .. } = self.options;
        ReadError::NoCounter { target: target.clone(), object, interface: interface.clone() }
    }
}

/// Whether `ifOperStatus` says up (1), or nothing.
fn is_up(status: Option<&Value>) -> bool {
    status.and_then(Value::as_i32).is_none_or(|status| status == 1)
}

/// Returns a counter or gauge.
fn counter(value: &Value) -> Option<Counter> {
    match value {
        Value::Counter64(value) => Some(Counter::bits64(*value)),
        Value::Counter32(value) | Value::Gauge32(value) => Some(Counter::bits32(*value)),
        _ => None,
    }
}

/// Returns the text of a value. Agents pad names with NUL.
fn text(value: &Value) -> String {
    let bytes = value.as_bytes().unwrap_or_default();
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

impl SnmpOptions {
    fn protocol(&self, message: String) -> ReadError {
        ReadError::Protocol { target: self.target.clone(), message }
    }

    /// Converts an error of the client.
    fn failed(&self, error: &Error) -> ReadError {
        let target = self.target.clone();
        let refused = |message: String| ReadError::Credentials {
            target: target.clone(),
            user: self.credentials.user().to_owned(),
            message,
        };
        match error {
            Error::Exchange { source, .. } => self.failed(source),
            Error::SharedOperation { source } => self.failed(source),
            Error::Auth { .. } => refused("the answer is not authenticated".to_owned()),
            Error::Report { status, .. } => match **status {
                ReportStatus::WrongDigest { .. } => refused("wrong password or auth protocol".to_owned()),
                ReportStatus::UnknownUserName { .. } => refused(UNKNOWN_USER.to_owned()),
                ReportStatus::UnsupportedSecurityLevel { .. } => {
                    refused("security level not supported".to_owned())
                }
                ReportStatus::DecryptionError { .. } => {
                    refused("wrong password or protocol of priv".to_owned())
                }
                _ => self.protocol(error.to_string()),
            },
            Error::Timeout { .. } | Error::Network { .. } | Error::ConstructionTimeout { .. } => {
                ReadError::Timeout { target, message: error.to_string() }
            }
            _ => self.protocol(error.to_string()),
        }
    }
}
