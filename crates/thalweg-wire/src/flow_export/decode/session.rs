//! The state of a transport session.

use std::collections::BTreeMap;

use super::clock::{ExportTime, LastMessage, micros};
use super::domain::{Domain, DomainKey, Work};
use super::error::DecodeErrorKind;
use super::held::{Budget, HeldSet, HeldSets};
use super::limits::Limits;
use super::names::Names;
use super::netflow5;
use super::plan::Header;
use super::reader::Reader;
use super::sampling::Sampling;
use super::saved::SavedDomain;
use super::sets::{Content, Message, Set};
use super::sflow;
use super::statistics::{Counts, Transport};
use super::template::{Definition, FIRST_TEMPLATE, SavedTemplate, Scratch, Template, definitions};
use crate::flow_export::{Decoded, Format, RecordBatch};
use crate::time::Timestamp;

/// A transport session: an exporter's address, port and transport.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) transport: Transport,
    pub(super) domains: BTreeMap<DomainKey, Domain>,
    pub(super) held: HeldSets,
    /// The number of templates in all domains.
    templates: usize,
    pub(super) last_received: Timestamp,
    /// The decoder's message number at the last use.
    pub(super) last_used: u64,
    pub(super) has_given_rows: bool,
}

/// The decoder's state that a session needs for one message.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) limits: &'a Limits,
    pub(super) budget: &'a mut Budget,
    /// The limit of names, of all sessions.
    pub(super) name_budget: &'a mut Budget,
    pub(super) scratch: &'a mut Scratch,
    pub(super) netflow5: &'a Template,
    pub(super) received: Timestamp,
    /// The decoder's message number.
    pub(super) number: u64,
    /// The configured sampling interval; 0: unknown.
    pub(super) sampling_interval: u32,
    /// Whether rows describe the packets in tunnels.
    pub(super) decapsulate: bool,
}

impl Context<'_> {
    fn work(&mut self) -> Work<'_> {
        Work { message: self.number, scratch: self.scratch, name_budget: self.name_budget }
    }
}

impl Session {
    pub(super) fn new(transport: Transport) -> Session {
        Session {
            transport,
            domains: BTreeMap::new(),
            held: HeldSets::default(),
            templates: 0,
            last_received: Timestamp(0),
            last_used: 0,
            has_given_rows: false,
        }
    }

    /// Returns the domain of a message, and creates it within the limit.
    pub(super) fn domain(&mut self, key: DomainKey, limits: &Limits) -> Result<&mut Domain, DecodeErrorKind> {
        let limit = limits.domains;
        if self.domains.len() >= limit && !self.domains.contains_key(&key) {
            let observation_domain_id = key.observation_domain_id;
            return Err(DecodeErrorKind::TooManyDomains { observation_domain_id, limit });
        }
        Ok(self.domains.entry(key).or_default())
    }

    /// Decodes a NetFlow v5 message.
    pub(super) fn netflow5(
        &mut self,
        message: netflow5::Message<'_>,
        context: &mut Context<'_>,
        into: &mut Decoded,
    ) -> Result<(), DecodeErrorKind> {
        let sampling_interval = match message.sampling_interval {
            0 => context.sampling_interval,
            interval => interval,
        };
        let domain = self.domain(message.key, context.limits)?;
        domain.note_message(message.export, context.received, sampling_interval);
        domain.note_sequence(message.sequence, Some(message.flows.into()));
        let header = Header { sampling_interval, ..header(message.key, context, message.export) };
        let Domain { sampling, counts, .. } = domain;
        let found = context.netflow5.decode_flows(
            message.records,
            &header,
            sampling,
            &mut into.flows,
            context.scratch,
        )?;
        counts.records += found.data_records;
        counts.untimed_records += found.untimed;
        Ok(())
    }

    /// Decodes an sFlow datagram.
    pub(super) fn sflow(
        &mut self,
        datagram: sflow::Datagram<'_>,
        context: &mut Context<'_>,
        into: &mut Decoded,
    ) -> Result<(), DecodeErrorKind> {
        let received_us = micros(context.received);
        let uptime_ms = Some(datagram.uptime_ms);
        let export = ExportTime { unix_us: received_us, uptime_ms };
        let domain = self.domain(datagram.key, context.limits)?;
        domain.note_message(export, context.received, domain.sampling_interval);
        domain.note_sequence(datagram.sequence, Some(1));
        let (flows, counters) = (into.flows.len(), into.counters.len());
        let decoded = datagram.decode(received_us, context.decapsulate, domain, into);
        if decoded.is_err() {
            into.flows.truncate(flows);
            into.counters.truncate(counters);
            domain.counts.dropped_malformed += 1;
        }
        domain.counts.records += (into.flows.len() - flows) as u64;
        domain.counts.counter_records += (into.counters.len() - counters) as u64;
        decoded
    }

    /// Decodes a NetFlow v9 or IPFIX message.
    pub(super) fn sets(
        &mut self,
        message: Message<'_>,
        context: &mut Context<'_>,
        into: &mut Decoded,
    ) -> Result<(), DecodeErrorKind> {
        let key = message.key;
        let domain = self.domain(key, context.limits)?;
        domain.note_message(message.export, context.received, context.sampling_interval);
        let (uptime_ms, sequence) = (message.export.uptime_ms, message.sequence);
        let discarded = domain.check_restored(
            LastMessage { received: context.received, uptime_ms, sequence },
            context.name_budget,
        );
        self.templates -= discarded;
        let first = into.flows.len();
        let records = message.check().and_then(|()| self.decode_sets(message, context, &mut into.flows));
        let domain = self.domain(key, context.limits)?;
        let units = match key.format {
            Format::NetFlow9 => Some(1),
            _ => records.ok().flatten(),
        };
        domain.note_sequence(message.sequence, units);
        if records.is_err() {
            into.flows.truncate(first);
            domain.counts.dropped_malformed += 1;
        }
        domain.counts.records += (into.flows.len() - first) as u64;
        records.map(drop)
    }

    /// Decodes the sets of a message. Returns the number of data records, if all templates are known.
    fn decode_sets(
        &mut self,
        message: Message<'_>,
        context: &mut Context<'_>,
        into: &mut RecordBatch,
    ) -> Result<Option<u32>, DecodeErrorKind> {
        let header = header(message.key, context, message.export);
        let mut records = Some(0u32);
        for set in message.sets() {
            let set = set?;
            match set.content(message.key.format) {
                Content::Templates { options } => {
                    for definition in definitions(message.key.format, options, set.content) {
                        self.define(message.key, definition?, context, into);
                    }
                }
                Content::Data => {
                    let found = self.data(message.key, set, &header, context, into)?;
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
        context: &mut Context<'_>,
        into: &mut RecordBatch,
    ) -> Result<Option<u64>, DecodeErrorKind> {
        self.drop_expired_template(key, set.id, context);
        let domain = self.domains.get_mut(&key).expect("the domain exists since the header was decoded");
        let first = into.len();
        let found = domain.data(set.id, set.content, header, context.work(), into)?;
        if into.len() > first {
            self.apply_names(key, first, into);
        }
        let domain = self.domains.get_mut(&key).expect("the domain exists since the header was decoded");
        if found.is_none() {
            domain.counts.held_sets += 1;
            let held = HeldSet {
                domain: key,
                template_id: set.id,
                received: context.received,
                header: *header,
                offset: set.content.offset(),
                bytes: set.content.bytes().into(),
            };
            let domains = &mut self.domains;
            self.held.hold(held, context.limits.held_bytes, context.budget, |dropped| {
                domains
                    .get_mut(&dropped.domain)
                    .expect("the domain of a held set exists")
                    .counts
                    .dropped_held_full += 1;
            });
        }
        Ok(found)
    }

    /// Drops a template received over UDP that was not refreshed in time.
    fn drop_expired_template(&mut self, key: DomainKey, template_id: u16, context: &Context<'_>) {
        let domain = self.domains.get_mut(&key).expect("the domain exists since the header was decoded");
        let Some(template) = domain.templates.get(&template_id) else { return };
        let age = context.received.since(template.defined);
        if self.transport == Transport::Datagram && age > context.limits.template_lifetime {
            domain.templates.remove(&template_id);
            domain.counts.templates_expired += 1;
            domain.changes += 1;
            self.templates -= 1;
        }
    }

    /// Handles a template record: a new template, a refresh, a change, or a withdrawal.
    fn define(
        &mut self,
        key: DomainKey,
        definition: Definition<'_>,
        context: &mut Context<'_>,
        into: &mut RecordBatch,
    ) {
        if definition.fields.is_empty() {
            return self.withdraw(key, &definition);
        }
        let domain = self.domains.get_mut(&key).expect("the domain exists since the header was decoded");
        let known = domain.templates.get_mut(&definition.id);
        if let Some(known) = known.filter(|known| known.is(&definition)) {
            known.defined = context.received;
            return;
        }
        let replaced = domain.templates.remove(&definition.id).is_some();
        domain.changes += 1;
        self.templates -= usize::from(replaced);
        let Some(mut template) = Template::new(&definition, context.limits.template_fields, context.received)
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
        if self.templates >= context.limits.templates {
            self.evict_template();
        }
        self.templates += 1;
        let domain = self.domains.get_mut(&key).expect("the domain exists since the header was decoded");
        template.last_used = context.number;
        domain.templates.insert(definition.id, template);
        self.release(key, definition.id, context, into);
    }

    /// Decodes the held sets of a template.
    fn release(
        &mut self,
        key: DomainKey,
        template_id: u16,
        context: &mut Context<'_>,
        into: &mut RecordBatch,
    ) {
        let before = into.len();
        let domain = self.domains.get_mut(&key).expect("the domain exists since the header was decoded");
        for held in self.held.release(key, template_id, context.budget) {
            domain.counts.released_sets += 1;
            let first = into.len();
            let set = Reader::at("held set", &held.bytes, held.offset);
            if domain.data(template_id, set, &held.header, context.work(), into).is_err() {
                into.truncate(first);
                domain.counts.dropped_malformed += 1;
            }
        }
        self.apply_names(key, before, into);
    }

    /// Fills the names of rows of a domain.
    fn apply_names(&self, key: DomainKey, first: usize, into: &mut RecordBatch) {
        let whole = DomainKey { observation_domain_id: 0, ..key };
        let whole = self.domains.get(&whole).filter(|_| whole != key).map(|domain| &domain.names);
        self.domains[&key].names.apply(whole, first, into);
    }

    /// Withdraws templates (RFC 7011 section 8.1). Over UDP a withdrawal is ignored (section 8.4), because it may be
    /// reordered or forged.
    fn withdraw(&mut self, key: DomainKey, definition: &Definition<'_>) {
        let domain = self.domains.get_mut(&key).expect("the domain exists since the header was decoded");
        if self.transport == Transport::Datagram {
            domain.counts.withdrawals_ignored += 1;
            return;
        }
        let before = domain.templates.len();
        domain.templates.retain(|&id, template| {
            let is_withdrawn = definition.id < FIRST_TEMPLATE && template.is_options() == definition.options;
            id != definition.id && !is_withdrawn
        });
        let withdrawn = before - domain.templates.len();
        domain.counts.templates_withdrawn += withdrawn as u64;
        self.templates -= withdrawn;
    }

    /// Evicts the least recently used template.
    fn evict_template(&mut self) {
        let all = self.domains.iter().flat_map(|(&key, domain)| {
            domain.templates.iter().map(move |(&id, template)| (template.last_used, key, id))
        });
        let Some((_, key, id)) = all.min() else { return };
        let domain = self.domains.get_mut(&key).expect("the domain of the template exists");
        domain.templates.remove(&id);
        domain.counts.templates_evicted += 1;
        domain.changes += 1;
        self.templates -= 1;
    }

    /// Drops expired held sets and templates.
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

    /// Drops all held sets: their templates will not arrive.
    pub(super) fn drop_held(&mut self, budget: &mut Budget) {
        for held in self.held.clear(budget) {
            self.counts(held.domain).dropped_template_late += 1;
        }
    }

    /// Changes of what a restart of the collector needs.
    pub(super) fn changes(&self) -> u64 {
        self.domains.values().map(|domain| domain.changes).sum()
    }

    /// Returns the domains that have templates or sampling intervals, for a restart of the collector.
    pub(super) fn saved(&self) -> Vec<SavedDomain> {
        let saved = |(&key, domain): (&DomainKey, &Domain)| SavedDomain {
            key,
            // If no message has arrived since the last restart, the exporter may have restarted all the same.
            last: domain.restored_after.unwrap_or(domain.last_message),
            system_init_ms: domain.clock.system_init_ms,
            sampling: domain.sampling.clone(),
            names: domain.names.clone(),
            templates: domain.templates.values().map(Template::saved).collect(),
        };
        let has_state = |(_, domain): &(&DomainKey, &Domain)| {
            !domain.templates.is_empty()
                || domain.sampling != Sampling::default()
                || domain.names != Names::default()
        };
        self.domains.iter().filter(has_state).map(saved).collect()
    }

    /// Adds a saved domain: its templates that have not expired, its sampling intervals and names.
    pub(super) fn restore(
        &mut self,
        saved: SavedDomain,
        limits: &Limits,
        now: Timestamp,
        names: &mut Budget,
    ) {
        let room = limits.templates.saturating_sub(self.templates);
        let Ok(domain) = self.domain(saved.key, limits) else { return };
        domain.restored_after = Some(saved.last);
        domain.last_received = saved.last.received;
        domain.sampling = saved.sampling;
        if names.used + saved.names.len() <= names.limit {
            names.used += saved.names.len();
            domain.names = saved.names;
        } else {
            domain.counts.names_refused += saved.names.len() as u64;
        }
        domain.clock.system_init_ms = saved.system_init_ms;
        let is_valid = |template: &&SavedTemplate| now.since(template.defined) <= limits.template_lifetime;
        let compiled = saved
            .templates
            .iter()
            .filter(is_valid)
            .filter_map(|it| it.compile(saved.key.format, limits.template_fields));
        let before = domain.templates.len();
        domain.templates.extend(compiled.take(room));
        let restored = domain.templates.len() - before;
        domain.counts.templates_restored += restored as u64;
        domain.changes += 1;
        self.templates += restored;
    }

    /// Ends the session, drops its held sets, and returns the sum of its counts.
    pub(super) fn end(mut self, budget: &mut Budget, names: &mut Budget) -> Counts {
        self.drop_held(budget);
        self.domains.values_mut().for_each(|domain| domain.names.clear(names));
        let mut sum = Counts::default();
        self.domains.values().for_each(|domain| sum += domain.counts);
        sum
    }

    fn counts(&mut self, key: DomainKey) -> &mut Counts {
        &mut self.domains.get_mut(&key).expect("the domain exists").counts
    }
}

fn header(key: DomainKey, context: &Context<'_>, export: ExportTime) -> Header {
    Header {
        received_us: micros(context.received),
        exporter: key.exporter,
        observation_domain_id: key.observation_domain_id,
        format: key.format,
        export,
        sampling_interval: context.sampling_interval,
        decapsulate: context.decapsulate,
    }
}
