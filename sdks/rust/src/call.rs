//! Calls: a deadline, a retry where it does no harm, and the member that has the queue.

use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use tokio::time::{Instant, sleep, timeout_at};
use tonic_prost::ProstCodec;

use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::{Ended, Error, Result};
use crate::link::{Link, Opened};
use crate::members::{MAX_HOPS, Member};
use crate::sent::Sent;

/// The member that an answer was fetched from.
const OWNER: &str = "fila-owner";

/// A longer time is this one: clocks and headers have an end.
pub(crate) const LONGEST: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Whether a call may be sent again when its answer was lost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    Yes,
    No,
}

impl Client {
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout.min(LONGEST)
    }

    /// Calls within the timeout of the client. `queue` says whom to ask first.
    pub(crate) async fn call<Q, R>(&self, path: &'static str, queue: &str, request: Q, again: Again) -> Result<R>
    where
        Q: prost::Message + Clone + 'static,
        R: prost::Message + Default + 'static,
    {
        self.call_until(self.deadline(), path, queue, request, again).await
    }

    pub(crate) async fn call_until<Q, R>(
        &self,
        deadline: Instant,
        path: &'static str,
        queue: &str,
        request: Q,
        again: Again,
    ) -> Result<R>
    where
        Q: prost::Message + Clone + 'static,
        R: prost::Message + Default + 'static,
    {
        let queue: Arc<str> = queue.into();
        let members = &self.shared.members;
        let mut progress = Progress::new(deadline, self.timeout);
        let calling = async {
            let mut member = members.of(&queue);
            let mut keys = 0;
            loop {
                let opened = member.link.open()?;
                let done_before = std::mem::replace(&mut progress.may_be_done, true);
                let status = match unary(&member.link, opened.clone(), path, request.clone(), deadline).await {
                    Ok(answer) => {
                        member.link.works();
                        if let Some(owner) = answer.metadata().get(OWNER).and_then(|owner| owner.to_str().ok())
                            && *owner != *opened.address
                        {
                            members.passed_on(&queue, owner);
                        }
                        return Ok(answer.into_inner());
                    }
                    Err(status) => status,
                };
                if Instant::now() >= deadline {
                    // Ended by the deadline that was sent along: that is no fault of the connection.
                    return Err(progress.late(&member.link));
                }
                let ended = Ended::of(status, &opened.address);
                member.link.ended(&opened, &ended);
                progress.may_be_done = done_before || ended.may_be_done();
                keys += u32::from(ended.is_key_ended());
                let resend = match &ended {
                    Ended::Refused(error, _) => error.is_retryable() || (ended.is_key_ended() && keys == 1),
                    Ended::Lost { sent, .. } => !sent || again == Again::Yes,
                    Ended::Broken(_) => false,
                };
                let error = ended.error();
                if let Some(named) = progress.hop(|| members.named(&queue, &error)) {
                    member = named;
                } else if resend {
                    progress.pause(error, &member.link).await?;
                    member = members.of(&queue);
                } else {
                    return Err(error);
                }
            }
        };
        match self.shared.tasks.until_closed(timeout_at(deadline, calling)).await? {
            // Its connection went with the client.
            Ok(Err(_)) if self.shared.tasks.are_closed() => Err(Error::closed()),
            Ok(answer) => answer,
            Err(_) => Err(progress.late(&members.of(&queue).link)),
        }
    }

    /// Hands work to the stream of a member, until the deadline. The stream refuses for now only what was not done, or what
    /// another member has: that is handed over again. It notes in `sent` whether the work may have been done.
    pub(crate) async fn through<A, F>(
        &self,
        queue: &Arc<str>,
        mut member: Arc<Member>,
        sent: &Sent,
        deadline: Instant,
        mut submit: impl FnMut(Arc<Member>) -> F,
    ) -> Result<A>
    where
        F: Future<Output = Result<A>>,
    {
        let mut progress = Progress::new(deadline, self.timeout);
        let submitting = async {
            loop {
                let error = match submit(member.clone()).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) => error,
                };
                if let Some(named) = progress.hop(|| self.shared.members.named(queue, &error)) {
                    member = named;
                } else if error.is_retryable() {
                    progress.pause(error, &member.link).await?;
                } else {
                    return Err(error);
                }
            }
        };
        match self.shared.tasks.until_closed(timeout_at(deadline, submitting)).await? {
            Ok(answer) => answer,
            Err(_) => {
                progress.may_be_done = sent.may_be_done();
                progress.refusal = sent.why().or(progress.refusal);
                Err(progress.late(&member.link))
            }
        }
    }
}

/// How far one call has come: its refusals, its waits, the members that it followed.
struct Progress {
    deadline: Instant,
    timeout: Duration,
    backoff: Backoff,
    hops: u32,
    refusal: Option<Error>,
    may_be_done: bool,
}

impl Progress {
    fn new(deadline: Instant, timeout: Duration) -> Self {
        Self { deadline, timeout, backoff: Backoff::new(), hops: 0, refusal: None, may_be_done: false }
    }

    /// The member to ask next, if one was named, and not too many were in a row.
    fn hop(&mut self, named: impl FnOnce() -> Option<Arc<Member>>) -> Option<Arc<Member>> {
        if self.hops >= MAX_HOPS {
            return None;
        }
        let named = named()?;
        self.hops += 1;
        Some(named)
    }

    /// Waits before the next attempt. Fails at once when that would be too late.
    async fn pause(&mut self, error: Error, link: &Link) -> Result<()> {
        self.hops = 0;
        let wait = self.backoff.next_wait().max(error.retry_after());
        self.refusal = Some(error);
        if Instant::now() + wait >= self.deadline {
            return Err(self.late(link));
        }
        sleep(wait).await;
        Ok(())
    }

    /// The error at the deadline. Only what was certainly not done is told as refused, or as unavailable.
    fn late(&mut self, link: &Link) -> Error {
        let why = self.refusal.take().or_else(|| link.trouble());
        match why {
            Some(why) if !self.may_be_done => why,
            Some(why) => Error::own(Error::DeadlineExceeded, format!("no answer within {:?}: {why}", self.timeout)),
            None => Error::own(Error::DeadlineExceeded, format!("no answer within {:?}", self.timeout)),
        }
    }
}

async fn unary<Q, R>(
    link: &Link,
    mut opened: Opened,
    path: &'static str,
    request: Q,
    deadline: Instant,
) -> std::result::Result<tonic::Response<R>, tonic::Status>
where
    Q: prost::Message + 'static,
    R: prost::Message + Default + 'static,
{
    opened.grpc.ready().await.map_err(|error| tonic::Status::from_error(Box::new(error)))?;
    let mut request = link.request(request);
    request.set_timeout(deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
    let codec = ProstCodec::<Q, R>::default();
    opened.grpc.unary(request, PathAndQuery::from_static(path), codec).await
}
