//! One transport session: an exporter's address and port, and what it has told.

use std::collections::BTreeMap;

use super::clock::{ExportTime, micros};
use super::domain::{Domain, DomainKey};
use super::error::Fault;
use super::held::{Budget, Held, HeldSet};
use super::limits::Limits;
use super::netflow5;
use super::plan::Header;
use super::reader::Reader;
use super::sets::{Content, Message, Set};
use super::sflow;
use super::statistics::{Counts, Transport};
use super::template::{Definition, FIRST_TEMPLATE, Scratch, Template, definitions};
use crate::flow_export::{Decoded, Format, RecordBatch};
use crate::time::Timestamp;

/// What an exporter has told over one session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) transport: Transport,
    pub(super) domains: BTreeMap<DomainKey, Domain>,
    pub(super) held: Held,
    /// Templates of all domains.
    templates: usize,
    pub(super) last_received: Timestamp,
    /// In messages of the decoder.
    pub(super) last_used: u64,
    pub(super) has_given_rows: bool,
}

/// What the decoder lends to a session for one message.
#[derive(Debug)]
pub(super) struct Loan<'a> {
    pub(super) limits: &'a Limits,
    pub(super) budget: &'a mut Budget,
    pub(super) scratch: &'a mut Scratch,
    pub(super) netflow5: &'a Template,
    pub(super) received: Timestamp,
    /// Which message of the decoder it is.
    pub(super) number: u64,
    /// What is configured; 0: nothing.
    pub(super) sampling_interval: u32,
}

impl Session {
    pub(super) fn new(transport: Transport) -> Session {
        Session {
            transport,
            domains: BTreeMap::new(),
            held: Held::default(),
            templates: 0,
            last_received: Timestamp(0),
            last_used: 0,
            has_given_rows: false,
        }
    }

    /// The domain of a message, which is new if there is room.
    pub(super) fn domain(&mut self, key: DomainKey, limits: &Limits) -> Result<&mut Domain, Fault> {
        let limit = limits.domains;
        if self.domains.len() >= limit && !self.domains.contains_key(&key) {
            let observation_domain_id = key.observation_domain_id;
            return Err(Fault::TooManyDomains { observation_domain_id, limit });
        }
        Ok(self.domains.entry(key).or_default())
    }

    /// Decodes a message of NetFlow v5.
    pub(super) fn netflow5(
        &mut self,
        message: netflow5::Message<'_>,
        loan: &mut Loan<'_>,
        into: &mut Decoded,
    ) -> Result<(), Fault> {
        let sampling_interval = match message.sampling_interval {
            0 => loan.sampling_interval,
            told => told,
        };
        let domain = self.domain(message.key, loan.limits)?;
        domain.arrived(message.export, loan.received, sampling_interval);
        domain.numbered(message.sequence, Some(message.flows.into()));
        let header = Header { sampling_interval, ..header(message.key, loan, message.export) };
        let Domain { sampling, counts, .. } = domain;
        let found =
            loan.netflow5.decode_flows(message.records, &header, sampling, &mut into.flows, loan.scratch)?;
        counts.records += found.data_records;
        counts.untimed_records += found.untimed;
        Ok(())
    }

    /// Decodes a datagram of sFlow.
    pub(super) fn sflow(
        &mut self,
        datagram: sflow::Datagram<'_>,
        loan: &mut Loan<'_>,
        into: &mut Decoded,
    ) -> Result<(), Fault> {
        let received_us = micros(loan.received);
        let uptime_ms = Some(datagram.uptime_ms);
        let export = ExportTime { unix_us: received_us, uptime_ms };
        let domain = self.domain(datagram.key, loan.limits)?;
        domain.arrived(export, loan.received, domain.sampling_interval);
        domain.numbered(datagram.sequence, Some(1));
        let (flows, counters) = (into.flows.len(), into.counters.len());
        let decoded = datagram.decode(received_us, domain, into);
        if decoded.is_err() {
            into.flows.truncate(flows);
            into.counters.truncate(counters);
            domain.counts.dropped_malformed += 1;
        }
        domain.counts.records += (into.flows.len() - flows) as u64;
        domain.counts.counter_records += (into.counters.len() - counters) as u64;
        decoded
    }

    /// Decodes a message of NetFlow v9 or IPFIX.
    pub(super) fn sets(
        &mut self,
        message: Message<'_>,
        loan: &mut Loan<'_>,
        into: &mut Decoded,
    ) -> Result<(), Fault> {
        let key = message.key;
        let domain = self.domain(key, loan.limits)?;
        domain.arrived(message.export, loan.received, loan.sampling_interval);
        let first = into.flows.len();
        let records = message.check().and_then(|()| self.each_set(message, loan, &mut into.flows));
        let domain = self.domain(key, loan.limits)?;
        let units = match key.format {
            Format::NetFlow9 => Some(1),
            _ => records.ok().flatten(),
        };
        domain.numbered(message.sequence, units);
        if records.is_err() {
            into.flows.truncate(first);
            domain.counts.dropped_malformed += 1;
        }
        domain.counts.records += (into.flows.len() - first) as u64;
        records.map(drop)
    }

    /// How many data records they have, if that can be told.
    fn each_set(
        &mut self,
        message: Message<'_>,
        loan: &mut Loan<'_>,
        into: &mut RecordBatch,
    ) -> Result<Option<u32>, Fault> {
        let header = header(message.key, loan, message.export);
        let mut records = Some(0u32);
        for set in message.sets() {
            let set = set?;
            match set.content(message.key.format) {
                Content::Templates { options } => {
                    for definition in definitions(message.key.format, options, set.content) {
                        self.define(message.key, definition?, loan, into);
                    }
                }
                Content::Data => {
                    let found = self.data(message.key, set, &header, loan, into)?;
                    records = records.zip(found).map(|(sum, found)| sum.wrapping_add(found as u32));
                }
                Content::Unknown => self.counts(message.key).dropped_unknown_set += 1,
            }
        }
        Ok(records)
    }

    fn data(
        &mut self,
        key: DomainKey,
        set: Set<'_>,
        header: &Header,
        loan: &mut Loan<'_>,
        into: &mut RecordBatch,
    ) -> Result<Option<u64>, Fault> {
        self.forget_stale(key, set.id, loan);
        let domain = self.domains.get_mut(&key).expect("its message was noted");
        let found = domain.data(set.id, set.content, header, loan.number, into, loan.scratch)?;
        if found.is_none() {
            domain.counts.held_sets += 1;
            let held = HeldSet {
                domain: key,
                template_id: set.id,
                received: loan.received,
                header: *header,
                offset: set.content.offset(),
                bytes: set.content.bytes().into(),
            };
            let domains = &mut self.domains;
            self.held.hold(held, loan.limits.held_bytes, loan.budget, |dropped| {
                domains.get_mut(&dropped.domain).expect("it held a set").counts.dropped_held_full += 1;
            });
        }
        Ok(found)
    }

    /// Drops a template that came over UDP and was not repeated in time.
    fn forget_stale(&mut self, key: DomainKey, template_id: u16, loan: &Loan<'_>) {
        let domain = self.domains.get_mut(&key).expect("its message was noted");
        let Some(template) = domain.templates.get(&template_id) else { return };
        let age = loan.received.since(template.defined);
        if self.transport == Transport::Datagram && age > loan.limits.template_lifetime {
            domain.templates.remove(&template_id);
            domain.counts.templates_expired += 1;
            self.templates -= 1;
        }
    }

    /// A template record: new, a repetition, a change, or a withdrawal.
    fn define(
        &mut self,
        key: DomainKey,
        definition: Definition<'_>,
        loan: &mut Loan<'_>,
        into: &mut RecordBatch,
    ) {
        if definition.fields.is_empty() {
            return self.withdraw(key, &definition);
        }
        let domain = self.domains.get_mut(&key).expect("its message was noted");
        let known = domain.templates.get_mut(&definition.id);
        if let Some(known) = known.filter(|known| known.is(&definition)) {
            known.defined = loan.received;
            return;
        }
        let replaced = domain.templates.remove(&definition.id).is_some();
        self.templates -= usize::from(replaced);
        let Some(mut template) = Template::new(&definition, loan.limits.template_fields, loan.received)
        else {
            domain.counts.templates_refused += 1;
            return;
        };
        let count = if replaced {
            &mut domain.counts.templates_replaced
        } else {
            &mut domain.counts.templates_defined
        };
        *count += 1;
        if self.templates >= loan.limits.templates {
            self.evict_template();
        }
        self.templates += 1;
        let domain = self.domains.get_mut(&key).expect("its message was noted");
        template.last_used = loan.number;
        domain.templates.insert(definition.id, template);
        self.release(key, definition.id, loan, into);
    }

    /// Decodes what has waited for a template.
    fn release(&mut self, key: DomainKey, template_id: u16, loan: &mut Loan<'_>, into: &mut RecordBatch) {
        let domain = self.domains.get_mut(&key).expect("its message was noted");
        for held in self.held.release(key, template_id, loan.budget) {
            domain.counts.released_sets += 1;
            let first = into.len();
            let set = Reader::at("set that was held", &held.bytes, held.offset);
            if domain.data(template_id, set, &held.header, loan.number, into, loan.scratch).is_err() {
                into.truncate(first);
                domain.counts.dropped_malformed += 1;
            }
        }
    }

    /// RFC 7011 section 8.1; over UDP it is ignored (section 8.4), for it may come out of order, or from anybody.
    fn withdraw(&mut self, key: DomainKey, definition: &Definition<'_>) {
        let domain = self.domains.get_mut(&key).expect("its message was noted");
        if self.transport == Transport::Datagram {
            domain.counts.withdrawals_ignored += 1;
            return;
        }
        let before = domain.templates.len();
        domain.templates.retain(|&id, template| {
            let is_meant = definition.id < FIRST_TEMPLATE && template.is_options() == definition.options;
            id != definition.id && !is_meant
        });
        let withdrawn = before - domain.templates.len();
        domain.counts.templates_withdrawn += withdrawn as u64;
        self.templates -= withdrawn;
    }

    /// Makes room for a template: that which has not been used for longest goes.
    fn evict_template(&mut self) {
        let all = self.domains.iter().flat_map(|(&key, domain)| {
            domain.templates.iter().map(move |(&id, template)| (template.last_used, key, id))
        });
        let Some((_, key, id)) = all.min() else { return };
        let domain = self.domains.get_mut(&key).expect("it has the template");
        domain.templates.remove(&id);
        domain.counts.templates_evicted += 1;
        self.templates -= 1;
    }

    /// Drops what has waited for too long.
    pub(super) fn expire(&mut self, now: Timestamp, limits: &Limits, budget: &mut Budget) {
        for held in self.held.expire(now, limits.held_for, budget) {
            self.counts(held.domain).dropped_template_late += 1;
        }
        if self.transport == Transport::Datagram {
            let lifetime = limits.template_lifetime;
            let expired = |domain: &mut Domain| domain.expire_templates(now, lifetime);
            self.templates -= self.domains.values_mut().map(expired).sum::<usize>();
        }
    }

    /// Everything that was counted, when the session is forgotten; what it held is dropped.
    pub(super) fn end(mut self, budget: &mut Budget) -> Counts {
        for held in self.held.clear(budget) {
            self.counts(held.domain).dropped_template_late += 1;
        }
        let mut sum = Counts::default();
        self.domains.values().for_each(|domain| sum += domain.counts);
        sum
    }

    fn counts(&mut self, key: DomainKey) -> &mut Counts {
        &mut self.domains.get_mut(&key).expect("a domain that was noted").counts
    }
}

fn header(key: DomainKey, loan: &Loan<'_>, export: ExportTime) -> Header {
    Header {
        received_us: micros(loan.received),
        exporter: key.exporter,
        observation_domain_id: key.observation_domain_id,
        format: key.format,
        export,
        sampling_interval: loan.sampling_interval,
    }
}
