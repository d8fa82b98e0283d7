//! The members of a cluster that this client talks to, each with its own connection and its own count of batches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use crate::addresses::is_address;
use crate::batch_stream::BatchStream;
use crate::error::Error;
use crate::link::{Key, Link, lock};
use crate::options::ClientBuilder;
use crate::producer::EnqueueCodec;
use crate::proto::ErrorKind;
use crate::random::random_name;
use crate::settle::SettleCodec;
use crate::tasks::Tasks;

/// How often one call follows the members that others name.
pub(crate) const MAX_HOPS: u32 = 4;

/// What a server names is remembered, but not without end.
const MOST_MEMBERS: usize = 64;
const MOST_ROUTES: usize = 10_000;

/// One server, or the addresses of a cluster that the client was given.
pub(crate) struct Member {
    pub(crate) link: Arc<Link>,
    pub(crate) producer: BatchStream<EnqueueCodec>,
    pub(crate) settles: BatchStream<SettleCodec>,
}

pub(crate) struct Members {
    options: Arc<ClientBuilder>,
    key: Arc<Key>,
    tasks: Tasks,
    /// Where every call begins: one of the addresses that the client was given.
    home: Arc<Member>,
    others: Mutex<Others>,
}

#[derive(Default)]
struct Others {
    members: HashMap<String, Arc<Member>>,
    /// Which member has a queue.
    routes: HashMap<Arc<str>, Arc<Member>>,
}

impl Members {
    pub(crate) fn new(options: ClientBuilder, key: Key, tasks: Tasks) -> Self {
        let (options, key) = (Arc::new(options), Arc::new(key));
        let home = Arc::new(member(options.addresses.clone(), &options, &key, &tasks));
        Self { options, key, tasks, home, others: Mutex::default() }
    }

    /// The member to ask about a queue: the one that was named last, unless it cannot be reached.
    pub(crate) fn of(&self, queue: &str) -> Arc<Member> {
        let mut others = lock(&self.others);
        match others.routes.get(queue) {
            Some(member) if !member.link.in_trouble() => member.clone(),
            Some(_) => {
                others.routes.remove(queue);
                self.home.clone()
            }
            None => self.home.clone(),
        }
    }

    /// The member that a refusal names, which is from now on the one of the queue.
    pub(crate) fn named(&self, queue: &Arc<str>, error: &Error) -> Option<Arc<Member>> {
        if error.kind() != Some(ErrorKind::NotOwner) {
            return None;
        }
        let address = error.owner().filter(|address| is_address(address))?;
        let mut others = lock(&self.others);
        let named = self.at(&mut others, address);
        others.note(queue, &named);
        Some(named)
    }

    /// An answer was passed on by another member: the next call goes to this one, unless it could not be reached before.
    pub(crate) fn passed_on(&self, queue: &Arc<str>, address: &str) {
        if queue.is_empty() || !is_address(address) {
            return;
        }
        let mut others = lock(&self.others);
        let named = self.at(&mut others, address);
        if !named.link.in_trouble() {
            others.note(queue, &named);
        }
    }

    /// Members that are forgotten here live for as long as somebody has work for them.
    fn at(&self, others: &mut Others, address: &str) -> Arc<Member> {
        if others.members.len() >= MOST_MEMBERS && !others.members.contains_key(address) {
            *others = Others::default();
        }
        let make = || Arc::new(member(vec![address.to_owned()], &self.options, &self.key, &self.tasks));
        others.members.entry(address.to_owned()).or_insert_with(make).clone()
    }

    /// For a task that must not keep the client alive.
    pub(crate) fn finder(self: &Arc<Self>) -> Finder {
        Finder(Arc::downgrade(self))
    }

    pub(crate) fn close(&self) {
        let others = std::mem::take(&mut *lock(&self.others));
        for member in others.members.into_values().chain([self.home.clone()]) {
            member.link.close();
        }
    }
}

impl Others {
    fn note(&mut self, queue: &Arc<str>, member: &Arc<Member>) {
        if self.routes.len() >= MOST_ROUTES {
            self.routes.clear();
        }
        self.routes.insert(queue.clone(), member.clone());
    }
}

/// Finds members for as long as their client lives.
pub(crate) struct Finder(Weak<Members>);

impl Finder {
    pub(crate) fn of(&self, queue: &str) -> Option<Arc<Member>> {
        Some(self.0.upgrade()?.of(queue))
    }

    /// Follows a refusal. Returns whether it names a member.
    pub(crate) fn named(&self, queue: &Arc<str>, error: &Error) -> bool {
        self.0.upgrade().is_some_and(|members| members.named(queue, error).is_some())
    }
}

fn member(addresses: Vec<String>, options: &Arc<ClientBuilder>, key: &Arc<Key>, tasks: &Tasks) -> Member {
    let link = Arc::new(Link::new(options.clone(), key.clone(), addresses, tasks.clone()));
    // Each member counts the batches of a producer by itself, so each has a name of its own.
    let producer = BatchStream::start(link.clone(), EnqueueCodec::new(random_name()), tasks);
    let settles = BatchStream::start(link.clone(), SettleCodec::default(), tasks);
    Member { link, producer, settles }
}
